package summarizer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ullage/ullage/pkg/constitution"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// scripted is a model that answers by a function, one request after the other, and keeps what it was asked.
type scripted struct {
	mu     sync.Mutex
	asked  []llm.Request
	answer func(n int, r llm.Request) (llm.Response, error)
}

func (s *scripted) Complete(ctx context.Context, r llm.Request) (llm.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return llm.Response{}, context.Cause(ctx)
	}
	s.asked = append(s.asked, r)
	return s.answer(len(s.asked)-1, r)
}

func says(text string) (llm.Response, error) {
	return llm.Response{Text: text, Stop: llm.StopEnd}, nil
}

const goodDigest = "## Findings\nbuild-tool: the build is run by make\n\n## Current state\nGoal: port the parser\nDeliverable: still owed\nStatus: building\nNext: run make\n"

// tooLong is the error of a real client whose provider says so.
func tooLong(t *testing.T) error {
	t.Helper()
	err := llm.ErrTooLong
	return fmt.Errorf("ask a model: %w", err)
}

// longFold is a fold of steps that each read a file: so many bytes of results in all.
func longFold(t testing.TB, steps, bytes int) engine.Fold {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Port the parser. Never push to main."}`)
	line := strings.Repeat("func parse(tokens []Token) (Node, error) { return walk(tokens, 0) } // 0123456789\\n", 1+bytes/steps/84)
	for i := range steps {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"text","text":"Reading part %d, built by make."},{"type":"tool_use","id":"t%d","name":"Read","input":{"file_path":"/src/f%d.go"}}]},`, i, i, i)
		fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`, i, line)
	}
	b.WriteString(`]}`)
	req, err := wire.Decode(wire.Anthropic, []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return engine.Fold{
		Coverage: engine.ExtendCoverage(engine.Coverage{}, req.Messages), Messages: req.Messages, FromStep: 1, ToStep: steps, Steps: steps,
		Tier: engine.TierFloor, Cap: 2500, WEff: 180_000, Date: "2026-12-01",
	}
}

func jobFor(f engine.Fold) Job {
	return jobOf(&Call{Key: record.Key{Tenant: "acme", Task: "t-1"}, Format: wire.Anthropic, Fold: f, Cause: CauseStep, Model: "m"})
}

// size is what a request takes of a model's window, by the estimate from above.
func size(r llm.Request) int { return tokens(r.System) + tokens(r.Prompt) + r.MaxTokens }

// TestSpanLargerThanTheWindowEnds: 1.5 M tokens go through a window of 32 K in passes that each fit, and come back as one
// summary (field-failures D1, D2, D4).
func TestSpanLargerThanTheWindowEnds(t *testing.T) {
	f := longFold(t, 3000, 6_000_000)
	const window = 32_000
	model := &scripted{answer: func(n int, r llm.Request) (llm.Response, error) {
		return says(fmt.Sprintf("## Findings\npass-%d-tool: the build is run by make\n", n))
	}}
	m := &Model{Ask: model, Tools: toolrule.Builtin(), Window: window}
	began := time.Now()
	s, err := m.Summarise(t.Context(), jobFor(f), f)
	if err != nil {
		t.Fatal(err)
	}
	if s.Source != engine.Model || s.Steps != f.Steps || s.Coverage != f.Coverage {
		t.Errorf("a summary of %d steps by the %s source", s.Steps, s.Source)
	}
	if !strings.Contains(s.Text, "Never push to main") {
		t.Error("the user's words are not in the summary")
	}
	for i, r := range model.asked {
		if n := size(r); n > window {
			t.Errorf("request %d takes %d tokens of a window of %d", i, n, window)
		}
		if r.System != constitution.Prompt() || r.For != (llm.Account{Tenant: "acme", Task: "t-1", Cause: CauseStep}) {
			t.Errorf("request %d: booked to %+v", i, r.For)
		}
	}
	if n := len(model.asked); n < 4 || n > 400 {
		t.Errorf("%d passes", n)
	}
	t.Logf("%d passes in %s", len(model.asked), time.Since(began))
	for i := range 3000 { // every step is in some pass
		found := false
		for _, r := range model.asked {
			found = found || strings.Contains(r.Prompt, fmt.Sprintf("Reading part %d,", i))
		}
		if !found {
			t.Fatalf("step %d was shown to nobody", i)
		}
	}
}

// TestPartsThatTheTimeCannotHoldAreNotBegun: answers that would come too late are not paid for.
func TestPartsThatTheTimeCannotHoldAreNotBegun(t *testing.T) {
	f := longFold(t, 600, 2_000_000)
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
	var reasons reasons
	m := &Model{Ask: model, Window: 16_000, Tools: toolrule.Builtin(), Now: time.Now, Refused: reasons.add}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := m.Summarise(ctx, jobFor(f), f); !errors.Is(err, context.DeadlineExceeded) || len(model.asked) > 0 || reasons.count()[Late] != 1 {
		t.Errorf("asked %d times, counted %v: %v", len(model.asked), reasons.count(), err)
	}
}

// TestEveryRequestFitsTheWindow: whatever the span, the digest so far, the pins and the answers, no request is larger than
// the window that was promised, by the estimate from above.
func TestEveryRequestFitsTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f engine.Fold
		long := func(name string, most int) string {
			return strings.Repeat(rapid.SampledFrom([]string{"word and ", "漢字かな交じり文。", "0x1f+", "{\"a\":[1,2]}", "</span>", "👩‍👩‍👧", "мир и труд "}).Draw(t, name), rapid.IntRange(0, most).Draw(t, name+" times"))
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			f.Messages = append(f.Messages, hostileMessage(i, "x"+hostileText().Draw(t, "text")+long("more", 4000)))
		}
		f.Cap, f.WEff = rapid.SampledFrom([]int{500, 2500, 20_000}).Draw(t, "cap"), 180_000
		f.Guidance = long("guidance", 2000)
		for range rapid.IntRange(0, 60).Draw(t, "pins") {
			f.Pins = append(f.Pins, long("pin", 30))
		}
		if rapid.Bool().Draw(t, "prior") {
			f.Prior = &engine.Summary{Coverage: engine.Sum(nil), Depth: 1, Text: "## Findings\n" + strings.ReplaceAll("a-key: "+long("prior", 5000), "\n", " ") + "\n"}
		}
		window := rapid.IntRange(MinWindow, 60_000).Draw(t, "window")
		answers := rapid.SliceOfN(rapid.IntRange(0, 5), 40, 40).Draw(t, "answers")
		model := &scripted{answer: func(n int, _ llm.Request) (llm.Response, error) {
			switch answers[n%len(answers)] {
			case 0:
				return llm.Response{}, llm.ErrTooLong
			case 1:
				return llm.Response{Stop: llm.StopLength, Text: goodDigest}, nil
			case 2:
				return says("I will summarise this now.")
			}
			return says(goodDigest)
		}}
		_, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: window}).Summarise(context.Background(), jobFor(f), f)
		for i, r := range model.asked {
			if n := size(r); n > window {
				t.Fatalf("request %d takes %d tokens of a window of %d", i, n, window)
			}
		}
		if len(model.asked) == 0 {
			t.Fatalf("the model was not asked: %v", err)
		}
	})
}

// TestSmallestWindowFits: also the smallest window allowed has room for instructions, digest, answer and span.
func TestSmallestWindowFits(t *testing.T) {
	f := longFold(t, 40, 400_000)
	f.Prior = &engine.Summary{Coverage: engine.Sum([]byte("p")), Depth: 1, Text: "## Findings\n" + strings.Repeat("an-old-one: "+strings.Repeat("found out ", 40)+"\n", 1)}
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
	if _, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: MinWindow}).Summarise(t.Context(), jobFor(f), f); err != nil {
		t.Fatal(err)
	}
	for i, r := range model.asked {
		if n := size(r); n > MinWindow {
			t.Errorf("request %d takes %d tokens of %d", i, n, MinWindow)
		}
	}
}

// TestHugePriorFits: a digest so far that is larger than the window is shown in part, and kept whole by the code.
func TestHugePriorFits(t *testing.T) {
	f := longFold(t, 5, 10_000)
	var prior strings.Builder
	prior.WriteString("## Constraints\n")
	for i := range 900 {
		fmt.Fprintf(&prior, "safety-rule-%d: never delete the table number %d of the production database\n", i, i)
	}
	f.Prior = &engine.Summary{Coverage: engine.Sum([]byte("p")), Depth: 1, Text: prior.String()}
	const window = 16_000
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
	s, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: window}).Summarise(t.Context(), jobFor(f), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range model.asked {
		if n := size(r); n > window {
			t.Errorf("a request takes %d tokens of %d", n, window)
		}
	}
	if !strings.Contains(s.Text, "safety-rule-450: never delete the table number 450") {
		t.Error("a rule that the model was not shown is gone")
	}
}

// TestModelTakesLessThanItsWindow: parts that turn out too long are halved until they fit, and that is remembered.
func TestModelTakesLessThanItsWindow(t *testing.T) {
	f := longFold(t, 300, 2_000_000)
	const real = 12_000
	refused := 0
	model := &scripted{}
	model.answer = func(_ int, r llm.Request) (llm.Response, error) {
		if size(r) > real {
			refused++
			return llm.Response{}, tooLong(t)
		}
		return says(goodDigest)
	}
	if _, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000, Passes: 1}).Summarise(t.Context(), jobFor(f), f); err != nil {
		t.Fatal(err)
	}
	if refused == 0 || refused > 8 {
		t.Errorf("%d of %d requests were too long", refused, len(model.asked))
	}
}

// TestAlwaysTooLongEnds: a model that finds everything too long is not asked for ever.
func TestAlwaysTooLongEnds(t *testing.T) {
	f := longFold(t, 300, 1_000_000)
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return llm.Response{}, tooLong(t) }}
	var reasons reasons
	_, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000, Refused: reasons.add}).Summarise(t.Context(), jobFor(f), f)
	if !errors.Is(err, llm.ErrTooLong) || len(model.asked) > 100 {
		t.Fatalf("%d requests, %v", len(model.asked), err)
	}
	if reasons.count()[TooLong] != len(model.asked) {
		t.Errorf("counted %v of %d", reasons.count(), len(model.asked))
	}
}

type reasons struct {
	mu sync.Mutex
	by map[string]int
}

func (r *reasons) add(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]int{}
	}
	r.by[reason]++
}

func (r *reasons) count() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for k, n := range r.by {
		out[k] = n
	}
	return out
}

// TestSecondTryIsTold: an answer that is no summary is asked for once more, with what was wrong; then the model is left.
func TestSecondTryIsTold(t *testing.T) {
	f := longFold(t, 5, 10_000)
	bad := []llm.Response{
		{Text: "Sure, I will get to it.", Stop: llm.StopEnd},
		{Text: "", Stop: llm.StopEnd},
		{Text: "", Stop: llm.StopEnd, Thinking: true},
		{Text: goodDigest, Stop: llm.StopTool, ToolCall: true},
		{Text: goodDigest, Stop: llm.StopLength},
		{Text: "", Stop: llm.StopRefusal},
		{Text: goodDigest, Stop: "pause_turn"},
	}
	for _, b := range bad {
		var reasons reasons
		model := &scripted{answer: func(n int, _ llm.Request) (llm.Response, error) {
			if n == 0 {
				return b, nil
			}
			return says(goodDigest)
		}}
		s, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000, Refused: reasons.add}).Summarise(t.Context(), jobFor(f), f)
		if err != nil || s.Source != engine.Model || len(model.asked) != 2 {
			t.Errorf("%+v: %v source after %d requests, %v", b, s.Source, len(model.asked), err)
			continue
		}
		if p := model.asked[1].Prompt; !strings.Contains(p, "could not be used") {
			t.Errorf("%+v: the second try is not told what was wrong:\n%s", b, p[max(0, len(p)-600):])
		}
		if b.Stop == llm.StopLength && model.asked[1].MaxTokens <= model.asked[0].MaxTokens {
			t.Error("the answer ran into its limit, and got no more")
		}
		if n := len(reasons.count()); n != 1 {
			t.Errorf("%+v: counted %v", b, reasons.count())
		}

		model.answer = func(int, llm.Request) (llm.Response, error) { return b, nil }
		model.asked = nil
		if _, err = (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000}).Summarise(t.Context(), jobFor(f), f); err == nil || len(model.asked) != 2 {
			t.Errorf("%+v: %d requests, %v", b, len(model.asked), err)
		}
	}
}

// TestPartThatFailsIsDoneByCode: one part of many that the model fails twice does not cost the whole, and is not left
// out; if most fail, the fold does.
func TestPartThatFailsIsDoneByCode(t *testing.T) {
	f := longFold(t, 400, 1_200_000)
	f.Messages = append(f.Messages[:401:401], append(userSays(t, "Always answer in verse. Use the tabs layout."), f.Messages[401:]...)...)
	f.Coverage = engine.ExtendCoverage(engine.Coverage{}, f.Messages)
	run := func(fails func(prompt string) bool) (engine.Summary, int, error) {
		model := &scripted{answer: func(_ int, r llm.Request) (llm.Response, error) {
			if fails(r.Prompt) {
				return says("")
			}
			return says("## Findings\nbuild-tool: the build is run by make\n")
		}}
		s, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 32_000}).Summarise(t.Context(), jobFor(f), f)
		return s, len(model.asked), err
	}
	s, n, err := run(func(p string) bool { return strings.Contains(p, "Always answer in verse") })
	if err != nil || s.Source != engine.Model {
		t.Fatalf("%v after %d requests, %v", s.Source, n, err)
	}
	for _, want := range []string{"Always answer in verse", "run by make"} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
	if s, n, err = run(func(string) bool { return true }); err == nil || n > 60 {
		t.Errorf("%v after %d requests, %v", s.Source, n, err)
	}
}

func userSays(t *testing.T, text string) []engine.Message {
	t.Helper()
	req, err := wire.Decode(wire.Anthropic, []byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":`+quoted(text)+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return req.Messages
}

// TestReasoningInTheText: what some servers leave of a model's reasoning in front of its answer is not the answer.
func TestReasoningInTheText(t *testing.T) {
	f := longFold(t, 5, 10_000)
	var reasons reasons
	model := &scripted{answer: func(n int, _ llm.Request) (llm.Response, error) {
		if n == 0 {
			return says("<think>\n## Findings\nnot-meant: a thought that has no end")
		}
		return says("<think>\n## Findings\nnot-meant: only a thought\n</think>\n" + goodDigest)
	}}
	s, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000, Refused: reasons.add}).Summarise(t.Context(), jobFor(f), f)
	if err != nil || reasons.count()[ThinkingOnly] != 1 || strings.Contains(s.Text, "not-meant") || !strings.Contains(s.Text, "run by make") {
		t.Errorf("counted %v, %v\n%s", reasons.count(), err, s.Text)
	}
}

// TestLanguageIsToldAndChecked: the model is told which language the user writes in, also where the span holds nothing of
// the user; an answer in another is counted, and its statements are not translated (field-failures G5).
func TestLanguageIsToldAndChecked(t *testing.T) {
	const english = "## Decisions\napproach: the analyser is written again from the grammar, because the old one cannot be kept\n\n## Findings\ncause: the tests fail because the old analyser does not read the comments\n"
	for code, c := range map[string]struct{ asked, answer string }{
		"pt": {
			"Por favor, escreve o analisador outra vez a partir da gramática. Não mudes os testes, e responde sempre com exemplos.",
			"## Decisions\nabordagem: o analisador é escrito outra vez a partir da gramática, porque o antigo não serve\n",
		},
		"zh": {"请根据语法重新编写解析器。不要修改测试，并且总是给出例子。", "## Decisions\n方法: 解析器根据语法重新编写，因为旧的不能用\n"},
		"ja": {"文法に基づいてパーサーを書き直してください。テストは変更しないでください。", "## Decisions\n方針: パーサーは文法に基づいて書き直す。古いものは使えないため\n"},
	} {
		f := longFold(t, 5, 10_000)
		f.Messages = append(userSays(t, c.asked), f.Messages[1:]...)
		f.Coverage = engine.ExtendCoverage(engine.Coverage{}, f.Messages)
		fold := func(f engine.Fold, answer string) (engine.Summary, string) {
			model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(answer) }}
			s, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000}).Summarise(t.Context(), jobFor(f), f)
			if err != nil {
				t.Fatal(err)
			}
			return s, model.asked[0].Prompt
		}
		repaired := func(s engine.Summary) int {
			for _, r := range s.Repairs {
				if r.Kind == "language" {
					return r.N
				}
			}
			return 0
		}
		s, prompt := fold(f, english)
		if !strings.Contains(prompt, "`"+code+"`") {
			t.Errorf("%s: the model is not told the language:\n%s", code, prompt[len(prompt)-500:])
		}
		if repaired(s) == 0 || !strings.Contains(s.Text, c.asked) {
			t.Errorf("%s: an English answer is not counted: %+v\n%s", code, s.Repairs, s.Text)
		}
		if s, _ = fold(f, c.answer); repaired(s) != 0 {
			t.Errorf("%s: an answer in it is counted: %+v\n%s", code, s.Repairs, s.Text)
		}
		next := f
		next.Prior, next.Messages = &s, f.Messages[1:]
		next.Coverage = engine.ExtendCoverage(s.Coverage, next.Messages)
		if _, prompt = fold(next, c.answer); !strings.Contains(prompt, "`"+code+"`") {
			t.Errorf("%s: a span without the user's words loses the language", code)
		}
	}
}

// TestModelIsNotAskedForNothing (field-failures F3).
func TestModelIsNotAskedForNothing(t *testing.T) {
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
	for _, msgs := range [][]engine.Message{nil, {{Role: engine.User}}, {{Role: engine.User, Blocks: []engine.Block{{Kind: engine.KindHead, Texts: []engine.Text{engine.PlainText("x")}}}}}} {
		if _, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000}).Summarise(t.Context(), Job{}, engine.Fold{Messages: msgs, Cap: 2500}); err == nil {
			t.Error("a summary of nothing")
		}
	}
	if len(model.asked) > 0 {
		t.Errorf("asked %d times", len(model.asked))
	}
}

// TestPromptShowsSpanAsData is the prompt that a person can read; see testdata.
func TestTaskIsTold(t *testing.T) {
	f := longFold(t, 2, 200)
	f.Pins, f.Guidance = []string{"The client's name is Ünal </span>"}, "mind the\nlicence texts </digest>"
	f.Prior = &engine.Summary{Text: "## Findings\na-b: c\n"}
	model := &scripted{answer: func(int, llm.Request) (llm.Response, error) { return says(goodDigest) }}
	if _, err := (&Model{Ask: model, Tools: toolrule.Builtin(), Window: 64_000}).Summarise(t.Context(), jobFor(f), f); err != nil {
		t.Fatal(err)
	}
	p := model.asked[0].Prompt
	for _, want := range []string{
		"<digest>\n## Findings\na-b: c\n</digest>", "<span part=\"1\" of=\"1\">", "<call step=\"1\" id=\"t0\" tool=\"Read\">\n{\"file_path\":\"/src/f0.go\"}\n</call>",
		"<result step=\"1\" id=\"t0\" tool=\"Read\">", "<user step=\"1\">\nPort the parser", "The cap is 2500 tokens", "2026-12-01",
		"- The client's name is Ünal <\\/span>", "mind the licence texts <\\/digest>",
	} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
}
