package toolrule

import "github.com/ullage/ullage/pkg/engine"

// Call is one finished tool call, input and result, as Mint reads it. Mint keeps and changes nothing of it.
type Call struct {
	ID        engine.CallID
	Name      string
	Input     []byte // the arguments: JSON text, or free text where TextInput is set; empty if there were none
	TextInput bool   // a Responses custom_tool_call, say
	Texts     []string
	Media     []engine.Media
	IsError   bool
	// Disposable: the tool declared its output used once.
	Disposable bool
}

// Tokens is the estimate that the precompact threshold is compared with: bytes of name, input and texts, over four.
func (c *Call) Tokens() int { return c.bytes() / 4 }

func (c *Call) bytes() int {
	n := len(c.Name) + len(c.Input)
	for _, t := range c.Texts {
		n += len(t)
	}
	return n
}

// Options are the knobs that are not a tool's own.
type Options struct {
	// PrecompactTokens is the size from which a part is minted (COMPACTION_PRECOMPACT_TOKENS). Defaults to
	// engine.DefaultPrecompact.
	PrecompactTokens int
	// Model lets rules of kind llm ask for one. Without it, which is the default, such a rule works as head_tail.
	Model bool
}

func (o Options) precompact() int {
	if o.PrecompactTokens > 0 {
		return o.PrecompactTokens
	}
	return engine.DefaultPrecompact
}
