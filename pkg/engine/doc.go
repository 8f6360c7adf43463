// Package engine decides, in values, what an agent's model sees: it reads messages, a snapshot and a budget, and
// returns a projection, the entries to remember and a report. It has no clock, no I/O, no context, no lock and no
// logger.
//
//	messages ─► Reconstruct ─► Strip ─► Restore ─► Clamp ─► Measure ─┬─ at or under trigger′, or held ──────────┐
//	               parts,       media    applied    new      anchor + │                                          ▼
//	               steps,       of old   forms and  results  increment└─► Reduce ─► ① shrink ─► ② floor ─► Project ─► view
//	               turns        turns    the widest                        (plan)   ③ shrink    ④ floor       │
//	                                     fold        available forms, ─────────┘     near window, last resort  ▼
//	                                                 folds as a function                             entries, anchor, report
//
// A [State] is a task's stream with its snapshot restored onto it. [State.Extend] takes new messages, [State.Decide]
// runs the operation at one boundary and changes nothing, [State.Commit] takes the decision in, [State.Projection]
// says how the view differs from the messages. [Observe] takes in what a provider measured. A State is a cache: made
// anew from all messages and the whole snapshot it is the same.
//
// # The laws
//
// Tests cite them by number.
//
//  1. The record is never rewritten. The engine changes no message it is given; a view is a list of edits.
//  2. Same messages, snapshot, budget and folds give the same output, whether the state grew piece by piece or was
//     made anew.
//  3. Restoring a restored view changes nothing.
//  4. Forms only escalate: raw, stripped, clamped, minted, superseded, dropped.
//  5. In a view every call has its result and every result its call, as far as they have them in the messages.
//  6. Reasoning is never split from the step it signs, nor changed. Where a provider binds it to all that stands before
//     it, what stands behind a change is left out from then on: of an answer all or none, so that what stays is an
//     unbroken run of what was made for this view, and nothing comes back.
//  7. Tiers ① and ② leave the last N steps untouched.
//  8. A climb ends at the first tier that reaches trigger′, with the room asked; ① alone aims at stop′.
//  9. One fold a climb at most; where ①, ② and ③ would not do, it is ④'s.
//  10. A miss is a skip; only a tool asks to be dropped.
//  11. At or under trigger′, and when held, no byte of what was sent changes inside a turn; if nothing was ever applied
//     the client's own bytes go out.
//  12. Two ineffective climbs in a row close the gate for the turn.
//  13. No reduction makes a part or a view larger.
//  14. A fold always answers: [FoldFunc] cannot fail.
//  15. P0 lines survive every fold verbatim (package constitution).
//  16. Losing the process loses nothing but scratch: the next call derives the same view.
//
// Laws 2 to 7, 9 to 11, 13 and 16 are asked of generated histories (TestLaws; 6 against a provider that binds reasoning by
// TestReasoningStaysValid), 5 and 13 of arbitrary bytes (FuzzProject),
// 4 and 7 to 12 by the scripts of testdata/ladder. Built with the tag "invariants", Decide runs twice and panics with
// a law's number where the outputs differ, and every Extend and Commit checks the running totals.
package engine
