package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/ullage/ullage/internal/bench"
)

type benchEngineCmd struct {
	Tokens []int `default:"50000,200000,1000000" placeholder:"N,…" help:"Sizes of the histories, in tokens at four bytes each."`
	Rounds int   `default:"15" help:"How often each is timed; lower quartiles are printed."`
	JSON   bool  `name:"json" help:"Print one JSON object a history."`
}

// Help is shown below the usage of bench engine.
func (benchEngineCmd) Help() string {
	return `"bare" is one validating JSON scan (encoding/json) and one SHA-256 pass over the body; "quick" the same with the
fastest scan at hand (gjson). A step is stateless: body and snapshot in, validated view and digest out. "grow" is a kept
state that is extended by two parts, decides and makes its projection. A raw history has nothing reduced in it; in a reduced
one old tool outputs stand as forms.`
}

// Run measures.
func (c *benchEngineCmd) Run(ctx contextArg) error {
	if c.Rounds < 1 {
		return fmt.Errorf("bench engine: --rounds is %d; it must be at least 1", c.Rounds)
	}
	enc := json.NewEncoder(os.Stdout)
	if !c.JSON {
		fmt.Printf("%10s %8s %7s %10s %10s %10s %10s %10s %11s %10s\n", "tokens", "history", "forms", "bare µs", "quick µs", "step µs", "grow µs", "step/bare", "step/quick", "grow/step")
	}
	for _, reduced := range []bool{false, true} {
		for _, tokens := range c.Tokens {
			if tokens < 1000 {
				return fmt.Errorf("bench engine: --tokens %d; the least is 1000", tokens)
			}
			r, err := bench.Measure(ctx, tokens, reduced, c.Rounds)
			if err != nil {
				return fmt.Errorf("bench engine: %w", err)
			}
			if c.JSON {
				if err := enc.Encode(r); err != nil {
					return fmt.Errorf("bench engine: print: %w", err)
				}
				continue
			}
			kind := "raw"
			if reduced {
				kind = "reduced"
			}
			fmt.Printf("%10s %8s %7d %10.0f %10.0f %10.0f %10.1f %10.2f %11.2f %10.5f\n", group(r.Tokens), kind, r.Forms, r.BareUS, r.QuickUS, r.StepUS, r.GrowUS, r.StepOverBare, r.StepOverQuick, r.GrowOverStep)
		}
	}
	return nil
}
