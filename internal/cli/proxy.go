package cli

import (
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/engine"
)

// Proxy are the flags of a process that stands between agents and their providers.
type Proxy struct {
	Anthropic string         `name:"anthropic-upstream" env:"ANTHROPIC_UPSTREAM" placeholder:"URL" help:"Where requests to /anthropic go. Default: https://api.anthropic.com; any server that speaks its wire."`
	OpenAI    string         `name:"openai-upstream" env:"OPENAI_UPSTREAM" placeholder:"URL" help:"Where requests to /openai go. Default: https://api.openai.com; any server that speaks its wire."`
	Windows   map[string]int `name:"model-window" env:"MODEL_WINDOWS" placeholder:"MODEL=TOKENS" help:"Context window of a model, by its name or the beginning of it; may be given more than once. Others have --window."`
	Tenants   string         `name:"tenants" enum:"key,one" default:"key" env:"TENANTS" help:"Whose tasks the proxy's callers share: those with the same key (key), or all (one), for a gateway of one person whose keys change."`
	DryRun    bool           `name:"dry-run" env:"DRY_RUN" help:"Say in headers what would be done, and change nothing: requests go through as they are and nothing is recorded."`
}

// Check refuses windows that are none.
func (p Proxy) Check() error {
	for model, n := range p.Windows {
		if model == "" || n < 1 {
			return fmt.Errorf("--model-window %s=%d: give the model's name and its window in tokens", model, n)
		}
	}
	return nil
}

// Budget is the budget of a model: the one given, with the window of the longest name that the model's begins with.
func (p Proxy) Budget(budget engine.Budget) func(model string) engine.Budget {
	return func(model string) engine.Budget {
		b, longest := budget, 0
		for name, n := range p.Windows {
			if strings.HasPrefix(model, name) && len(name) > longest {
				b.Window, longest = n, len(name)
			}
		}
		return b
	}
}
