package cli

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ullage/ullage/pkg/hook"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/summarizer"
)

// LLM are the flags of a process that asks a language model: for floor summaries, and for tool forms of kind llm. A
// command embeds it with the prefix of its environment names: ULLAGE_ or ULLAGE_SUMMARIZER_.
type LLM struct {
	Spec            string        `name:"llm" default:"extractive" env:"LLM" placeholder:"SPEC" help:"Who writes the summaries: anthropic:MODEL or openai:MODEL (OpenAI-compatible chat, local servers too), or extractive, which needs no model and no key. Keys come from ANTHROPIC_API_KEY and OPENAI_API_KEY. Default: extractive."`
	BaseURL         string        `name:"llm-base-url" env:"LLM_BASE_URL" placeholder:"URL" help:"Where the model is served, if not at the provider's own address; a key is optional then."`
	Window          int           `name:"llm-window" default:"200000" env:"LLM_WINDOW" placeholder:"TOKENS" help:"Context window of that model. A span that does not fit is summarised in parts. At least 8000. Default: 200000."`
	Calls           int           `name:"llm-calls" default:"8" env:"LLM_CALLS" placeholder:"N" help:"Calls to the model at once. Default: 8."`
	CallsPerTenant  int           `name:"llm-calls-per-tenant" env:"LLM_CALLS_PER_TENANT" placeholder:"N" help:"Of these, at most so many for one tenant. Default: 4, or all of them if they are fewer."`
	TokensPerMinute int           `name:"llm-tokens-per-minute" default:"0" env:"LLM_TOKENS_PER_MINUTE" placeholder:"TOKENS" help:"Tokens, prompt and answer, that one tenant may use in a minute; 0: no bound."`
	Timeout         time.Duration `name:"llm-timeout" default:"2m" env:"LLM_TIMEOUT" help:"How long one attempt at the model may take; a fold that is waited for ends it earlier."`
}

// Config is whom to ask. It refuses what contradicts itself, or is too small, with a sentence that names the flag.
func (l LLM) Config() (llm.Config, error) {
	c, err := llm.Parse(l.Spec)
	if err != nil {
		return llm.Config{}, fmt.Errorf("--llm: %w", err)
	}
	if c.Provider == llm.Extractive {
		if l.BaseURL != "" {
			return llm.Config{}, errors.New("--llm-base-url is given and --llm names no model; give --llm openai:MODEL or anthropic:MODEL, or leave the address out")
		}
		return c, nil
	}
	switch {
	case l.Window < summarizer.MinWindow:
		return llm.Config{}, fmt.Errorf("--llm-window %d: %w", l.Window, summarizer.CheckWindow(l.Window))
	case l.Calls < 1:
		return llm.Config{}, fmt.Errorf("--llm-calls %d must be at least 1", l.Calls)
	case l.CallsPerTenant < 0:
		return llm.Config{}, fmt.Errorf("--llm-calls-per-tenant %d must be at least 1; leave it out for the default", l.CallsPerTenant)
	case l.CallsPerTenant > l.Calls:
		return llm.Config{}, fmt.Errorf("--llm-calls-per-tenant %d is more than --llm-calls %d; no tenant can have more than there are", l.CallsPerTenant, l.Calls)
	case l.TokensPerMinute < 0:
		return llm.Config{}, fmt.Errorf("--llm-tokens-per-minute %d is negative; 0 means no bound", l.TokensPerMinute)
	case l.Timeout < time.Second:
		return llm.Config{}, fmt.Errorf("--llm-timeout %s is too short for any answer; give at least 1s", l.Timeout)
	}
	c.BaseURL, c.Timeout = l.BaseURL, l.Timeout
	return c, nil
}

// Limits are the bounds on what is asked of the model.
func (l LLM) Limits() llm.Limits {
	return llm.Limits{Calls: l.Calls, CallsPerTenant: l.CallsPerTenant, TokensPerMinute: l.TokensPerMinute}
}

// Hooks are the flags of the HTTP calls around a fold. A process that asks for folds makes the one before, one that
// answers them the one after.
type Hooks struct {
	Before  string        `name:"hook-before-fold" env:"HOOK_BEFORE_FOLD" placeholder:"URL" help:"Called before each floor summary: may name facts to keep, give guidance, or cancel one that can wait."`
	Timeout time.Duration `name:"hook-timeout" default:"5s" env:"HOOK_TIMEOUT" help:"How long a hook is waited for; the summary goes on without it then."`
}

// AfterHook is the flag of the call after a fold.
type AfterHook struct {
	After string `name:"hook-after-fold" env:"HOOK_AFTER_FOLD" placeholder:"URL" help:"Called after each floor summary: may add facts, or give another text, which the law of the summary is then applied to."`
}

// HooksOf are the hooks of the flags' addresses; nil if there is none.
func HooksOf(before, after string, timeout time.Duration) (*hook.Hooks, error) {
	if before == "" && after == "" {
		return nil, nil
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("--hook-timeout %s must be positive", timeout)
	}
	h := &hook.Hooks{Before: before, After: after, Timeout: timeout, Client: &http.Client{}}
	if err := h.Check(); err != nil {
		return nil, err
	}
	return h, nil
}
