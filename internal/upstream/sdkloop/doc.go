// Package sdkloop drives the providers' own Go SDKs, as they are, in an agent's tool loop against a base URL: one
// function for each surface. The model calls, the loop works, and hands the result back, until the turn ends. It is
// for tests: nothing of the SDKs is in the product.
package sdkloop

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Options are how a loop runs. The zero value is one turn, not streaming.
type Options struct {
	Model     string // Defaults to one of each surface
	Task      string // the user's first message. Two loops with one task and one key are one conversation
	System    string
	Stream    bool
	Turns     int    // messages of the user. Defaults to 1
	MaxSteps  int    // a guard: more generations are an error. Defaults to 1,000
	MaxTokens int64  // of output. Defaults to 16,000
	Thinking  string // Anthropic: "", adaptive, enabled
	// Markers: Anthropic: a cache marker on the last tool, the system prompt and the last block of the user's, as
	// agents do, moved on with every request.
	Markers bool
	Betas   []string // Anthropic
	// Stored: Responses: the provider keeps the history, and each request names the response before it.
	Stored bool
	// Count: Anthropic: count_tokens is asked before every tenth generation.
	Count   bool
	Retries int // by the SDK, of each request
	Header  map[string]string
	HTTP    *http.Client             // Defaults to the SDK's own
	Tool    func(Call) string        // does a call's work. Defaults to Work
	Each    func(step int, r Result) // is told of every generation
}

// Call is a tool call of the model.
type Call struct {
	ID, Name, Input string // Input is JSON
	Step            int    // of this loop, from 1
}

// Result is what a loop came to.
type Result struct {
	Steps, Calls int
	History      int    // bytes of tool results, the whole history's main part
	Last         string // text of the last generation
	IDs          []string
	Stops        []string // of every generation, in order
	Prompt       int64    // tokens of the last request, cached or not
	Most         int64    // the largest Prompt of all
	Cached       int64    // tokens read from the cache, over all requests
	Output       int64    // tokens, over all requests
	Counted      []int64  // what count_tokens said
}

func (o Options) defaults(model string) Options {
	if o.Model == "" {
		o.Model = model
	}
	if o.Task == "" {
		o.Task = "Make the tests of the parser pass, and say what was wrong."
	}
	if o.System == "" {
		o.System = "You are a careful engineer who works in a repository. Use the tools."
	}
	o.Turns = max(o.Turns, 1)
	if o.MaxSteps <= 0 {
		o.MaxSteps = 1000
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = 16_000
	}
	if o.Tool == nil {
		o.Tool = Work
	}
	return o
}

// request is what the user says in a turn, from 0.
func (o Options) request(turn int) string {
	if turn == 0 {
		return o.Task
	}
	return fmt.Sprintf("Good. Now do the same for part %d of it, and mind the naïve cases.", turn+1)
}

// headers are the options' own, in a fixed order.
func (o Options) headers() [][2]string {
	var out [][2]string
	for _, k := range slices.Sorted(maps.Keys(o.Header)) {
		out = append(out, [2]string{k, o.Header[k]})
	}
	return out
}

// work does a generation's call and counts it.
func (r *Result) work(o Options, id, name, input string) string {
	out := o.Tool(Call{ID: id, Name: name, Input: input, Step: r.Steps})
	r.Calls++
	r.History += len(out)
	r.IDs = append(r.IDs, id)
	return out
}

// step counts a generation.
func (r *Result) step(o Options, stop, text string, prompt, cached, output int64) error {
	r.Steps++
	r.Stops = append(r.Stops, stop)
	r.Last, r.Prompt = text, prompt
	r.Most = max(r.Most, prompt)
	r.Cached += cached
	r.Output += output
	if o.Each != nil {
		o.Each(r.Steps, *r)
	}
	if r.Steps > o.MaxSteps {
		return fmt.Errorf("a loop of more than %d steps: the script does not end", o.MaxSteps)
	}
	return nil
}
