// Package constitution is the law of the floor summary, as code: the digest that stands for a folded prefix as a
// data type, what may be added to it, what may leave it, two writers that need no model, and what code makes of the
// answer of one that does. It is pure: no clock, no I/O, no context, no logger. Same fold, same text.
//
// What always holds:
//
//  1. Parse(Render(d)) is d, for every digest that passes [Digest.Check].
//  2. A request keeps its ordinal for ever. It may take a shorter form by [Demote], never another's number.
//  3. [Merge] loses no line of the digest before: a line changes only under its own key and its own subject.
//  4. P0 lines (requests, safety and privacy rules) and P1 paths (deliverables) survive every fold byte for byte.
//  5. [Demote] moves lines to "## Archived" in the order of the constitution and deletes none.
//  6. A summary is at most max(cap, what may not be demoted) tokens.
//  7. Requests and constraints come from what the user wrote, decisions from what the user or the agent said; none of
//     them, and no next step, from what a tool's output says.
//  8. What a model writes is a proposal ([Adopt]): no line of it stands that quotes what nobody said, and what had to
//     be put right is counted ([Kinds]). The audit at the end finds nothing lost ("p0_lost"), whatever was proposed.
//  9. What somebody pinned is a constraint, word for word and once, whoever writes the summary.
//
// Sizes in tokens are UTF-8 bytes divided by four, rounded up: the engine's estimate, unscaled.
package constitution
