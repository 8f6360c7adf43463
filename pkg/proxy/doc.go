// Package proxy stands between an agent and its provider: a person sets one base URL, and their agent's long runs go on.
//
//	/anthropic/v1/messages, …/count_tokens     Anthropic Messages
//	/openai/v1/chat/completions                OpenAI Chat
//	/openai/v1/responses                       OpenAI Responses
//
// A request for one of these goes through the operation and on to the provider with the view in place of its messages, or
// with its own bytes where nothing is reduced. Every other path and method, and every request that is no agent's step (a
// title, a probe, a client's own compaction), goes through untouched. Headers, query strings, unknown fields and error
// bodies go through as they are, and answers are forwarded byte for byte as they come.
//
// Whatever goes wrong on our side, the client's own bytes go out: an agent must never be worse off than without us.
package proxy
