// Package constitution is the law of the floor summary, as code: the digest that stands for a folded prefix as a
// data type, what may be added to it, what may leave it, and two writers that need no model. It is pure: no clock,
// no I/O, no context, no logger. Same fold, same text.
//
// What always holds:
//
//  1. Parse(Render(d)) is d, for every digest that passes [Digest.Check].
//  2. A request keeps its ordinal for ever. It may take a shorter form by [Demote], never another's number.
//  3. [Merge] loses no line of the digest before: a line changes only under its own key and its own subject.
//  4. P0 lines (requests, safety and privacy rules) and P1 paths (deliverables) survive every fold byte for byte.
//  5. [Demote] moves lines to "## Archived" in the order of the constitution and deletes none.
//  6. A summary is at most max(cap, what may not be demoted) tokens.
//  7. Requests, constraints and decisions come from what the user wrote, never from tool output.
//
// Sizes in tokens are UTF-8 bytes divided by four, rounded up: the engine's estimate, unscaled.
package constitution
