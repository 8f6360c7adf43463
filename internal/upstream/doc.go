// Package upstream plays a provider by a script: Anthropic Messages with count_tokens, OpenAI Chat Completions and
// OpenAI Responses, streaming and not. It is a strict one. Every request is held against the provider's own rules
// (wire.md §1; the numbers A…, C…, R… in comments are theirs) and refused with the provider's own words. It signs the
// reasoning that it sends, bound to the prefix it was sent, and knows it again. It accounts its prompt cache by prefix
// (wire.md §5), plays faults, and keeps a log of what it was asked.
//
// It knows nothing of this module's other packages, so that it can contradict them. What it answers is a pure function
// of the request: the ids it issues carry the conversation and the step, so that a request tells where the script
// stands even if most of its history is gone, and the same request has the same answer, also after a restart.
//
// Where a rule is known from documentation alone, the stricter reading is played.
package upstream
