package engine_test

import (
	"fmt"
	"strings"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// A program that compacts in process, with no server: it keeps the request body that its agent has built, and sends
// the view instead. Forms are minted as tools finish; the floor needs no model.
func Example() {
	body := history(20) // an Anthropic request whose window is nearly full

	req, err := wire.Decode(wire.Anthropic, body)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget, err := engine.Budget{Window: 16000}.Resolve(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := engine.NewState(req.Messages, engine.Snapshot{}) // keep it, and Extend it with what is new

	decision := state.Decide(engine.Input{
		Boundary: engine.Step, Budget: budget, Model: req.Model,
		Instructions: req.InstructionBytes, Tools: req.ToolBytes,
		Minted: mint(state), Access: access,
	}, constitution.StaticCheckpoint)
	state.Commit(&decision) // what it chose is applied: restored on every later call

	projection := state.Projection()
	view, err := wire.Project(req, &projection)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := decision.Report
	fmt.Printf("%s at tier %d: %d tokens of history, a view under the trigger of %d: %v\n", r.Outcome, r.Tier, r.RawTok, r.Trigger, r.ViewTok <= r.Trigger)
	fmt.Printf("%d outputs shrunk, the last 5 steps untouched\n", len(r.Moves))
	fmt.Println("the view is smaller than the body:", len(view) < len(body))
	// Output:
	// reduced at tier 1: 11686 tokens of history, a view under the trigger of 9100: true
	// 14 outputs shrunk, the last 5 steps untouched
	// the view is smaller than the body: true
}

// mint makes the forms of all finished calls. A service does this as each tool finishes.
func mint(s *engine.State) map[engine.CallID][]engine.Form {
	forms := make(map[engine.CallID][]engine.Form)
	for _, p := range s.Parts() {
		if p.Kind != engine.KindCall || p.RMsg < 0 {
			continue
		}
		call, result := s.Block(p.Msg, p.Block), s.Block(p.RMsg, p.RBlock)
		c := toolrule.Call{ID: call.ID, Name: call.Name, Input: []byte(call.Input.String()), IsError: result.IsError, Media: result.Media}
		for i := range result.Texts {
			c.Texts = append(c.Texts, result.Texts[i].String())
		}
		form, ok, err := toolrule.Builtin().Mint(c, toolrule.Options{PrecompactTokens: 400})
		if err != nil || !ok {
			continue // a miss is a skip
		}
		form.Check = engine.CheckOf(c.Name, string(c.Input), false, result.Texts, c.Media)
		forms[c.ID] = append(forms[c.ID], form)
	}
	return forms
}

func access(name, input string) engine.FileAccess {
	a := toolrule.Builtin().Access(name, []byte(input))
	return engine.FileAccess{Path: a.Path, Read: a.Op == toolrule.Read, Whole: a.Whole, Write: a.Op == toolrule.Write || a.Op == toolrule.Edit}
}

// history is a request in which an agent has read so many files.
func history(steps int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":1000,"messages":[{"role":"user","content":"Why does the build fail?"}`)
	for i := range steps {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/src/f%d.go"}}]}`, i, i)
		fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]}`, i, strings.Repeat(`func f() int { return 1 } // a line\n`, 64))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}
