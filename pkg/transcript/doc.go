// Package transcript reads what agents left behind (session files, trajectories, request logs, request bodies) and
// gives tasks that can be played again call by call, each in the wire format that the agent spoke or, where it
// spoke none that we know, in OpenAI Chat.
//
// Formats are told apart by content, never by name. What a provider would refuse is repaired and counted
// ([Repairs]); a broken line is counted, never fatal. Every body that [Task.Body] makes for a boundary is legal by
// the pairing rules of its format (wire.md A2, A10, A20 to A24, C2 to C4, R2, R4, R8), and the same file gives the
// same bytes every time.
package transcript
