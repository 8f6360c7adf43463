package toolrule_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/realdata"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// Every call of the request bodies that real agents sent holds the contract, and nearly every large one has a form.
func TestRealRequests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "requests", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the transcripts hold no requests directory")
	}
	table := toolrule.Builtin()
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			large, minted, before, after := 0, 0, 0, 0
			for _, c := range callsOf(gjson.GetBytes(body, "body")) {
				checkForm(t, table, c, toolrule.Options{})
				if c.Tokens() < engine.DefaultPrecompact || table.Rule(c.Name).Kind == toolrule.None {
					continue
				}
				large++
				f, ok, err := table.Mint(c, toolrule.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					t.Logf("%s %.80s has no form", c.Name, c.Input)
					continue
				}
				minted++
				before += size(string(c.Input), c.Texts)
				input, texts := string(c.Input), c.Texts
				if f.Input != nil {
					input = *f.Input
				}
				if f.Texts != nil {
					texts = f.Texts
				}
				after += size(input, texts)
				again, ok, _ := table.Mint(toolrule.Call{Name: c.Name, Input: []byte(input), TextInput: c.TextInput, Texts: texts}, toolrule.Options{})
				if ok && again.Rung != engine.Dropped && table.Rule(c.Name).Bytes <= 4*engine.DefaultPrecompact {
					t.Errorf("%s %.80s: its form of %d bytes is minted again", c.Name, c.Input, size(input, texts))
				}
			}
			if large == 0 {
				t.Fatal("no large call was found in the body")
			}
			t.Logf("%d of %d large calls minted, %d bytes to %d", minted, large, before, after)
			if minted*10 < large*9 {
				t.Errorf("only %d of %d large calls have a form", minted, large)
			}
		})
	}
}

func size(input string, texts []string) int { return len(input) + len(strings.Join(texts, "")) }

// callsOf finds the calls of a body, whichever of the three wires it is in.
func callsOf(body gjson.Result) []toolrule.Call {
	var calls []toolrule.Call
	at := map[string]int{}
	call := func(id, name, input string) {
		at[id] = len(calls)
		calls = append(calls, toolrule.Call{ID: engine.CallID(id), Name: name, Input: []byte(input), TextInput: !json.Valid([]byte(input))})
	}
	result := func(id string, content gjson.Result) {
		i, ok := at[id]
		if !ok {
			return
		}
		if content.Type == gjson.String {
			calls[i].Texts = append(calls[i].Texts, content.Str)
		}
		for _, b := range content.Array() {
			if b.Get("text").Exists() {
				calls[i].Texts = append(calls[i].Texts, b.Get("text").Str)
			}
		}
	}
	for _, m := range append(body.Get("messages").Array(), body.Get("input").Array()...) {
		for _, b := range m.Get("content").Array() {
			switch b.Get("type").Str {
			case "tool_use":
				call(b.Get("id").Str, b.Get("name").Str, b.Get("input").Raw)
			case "tool_result":
				result(b.Get("tool_use_id").Str, b.Get("content"))
			}
		}
		for _, c := range m.Get("tool_calls").Array() {
			call(c.Get("id").Str, c.Get("function.name").Str, c.Get("function.arguments").Str)
		}
		switch {
		case m.Get("role").Str == "tool":
			result(m.Get("tool_call_id").Str, m.Get("content"))
		case m.Get("type").Str == "function_call":
			call(m.Get("call_id").Str, m.Get("name").Str, m.Get("arguments").Str)
		case m.Get("type").Str == "custom_tool_call":
			call(m.Get("call_id").Str, m.Get("name").Str, m.Get("input").Str)
		case strings.HasSuffix(m.Get("type").Str, "_call_output"):
			result(m.Get("call_id").Str, m.Get("output"))
		}
	}
	return calls
}
