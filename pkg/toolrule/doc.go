// Package toolrule says what each tool may lose. A [Table] of rules, data and not code, names for every tool the
// kind of reduction and its knobs; [Table.Mint] makes of one finished call the form that may later stand in for it
// (DESIGN §4). The package is pure: no clock, no file, no network, and the same call gives the same form.
//
// What holds for every form that Mint makes:
//
//   - It is smaller than the call by more than the way back to it will take.
//   - It is valid UTF-8 whatever came in, and cut on line ends, else on grapheme borders.
//   - It has one output text for each text segment of the result. A segment that is a JSON object or array remains
//     one, with the same keys in the same order and the same numbers and booleans; strings are shortened, and long
//     arrays end early with one more element of the same shape that says how many are gone. Arguments likewise.
//   - Every line, byte or item left out is counted in a note that begins with [engine.FormMark]; kept and gone add
//     up to what there was. One note, the first, holds [engine.PointerMark]. A dropped shell has no pointer.
//   - Lines kept out of a middle carry their number: the one that the tool printed, if it printed one, else their place
//     in the text, which is what view_tool_call counts in. The range that a note gives is always of places in the text.
//   - What the call itself contains of these two marks is written with a round parenthesis, so that a form cannot be
//     taken for another one, and no pointer appears where none was meant.
//   - Terminal escapes are left out of what is cut, and runs of other control characters become U+FFFD. Neither is
//     counted: the record keeps them.
package toolrule
