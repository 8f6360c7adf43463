package transcript

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

const (
	// Unanswered stands in for the result of a call that never got one.
	Unanswered  = "[no result recorded]"
	missingHead = "[earlier conversation not recorded]"
	noImage     = "[image not recorded]"
)

// round is one generation: what the client said before it, the model's parts, and the results of its calls.
type round struct {
	before  []event
	parts   []part
	calls   []*callRef
	byID    map[string]*callRef // the first call with each id
	results []*callRef          // in order of arrival
	usage   *engine.Usage
}

func (r *round) answered() bool {
	for _, c := range r.calls {
		if c.recorded {
			return true
		}
	}
	return false
}

// callRef is one call on its way to its result.
type callRef struct {
	part     part
	round    *round
	at       int // index of its event
	raw      json.RawMessage
	seq      int
	recorded bool
}

// assemble turns a neutral history into the messages and boundaries of a task whose identity is filled in already.
// It groups steps, gives every call exactly one result, in front of the next call, and leaves out what a provider
// refuses. Session is the prompt cache key, tools the tools if they are known.
func assemble(t *Task, events []event, env envelope) {
	d := dialectOf(t.Format)
	rounds, after := group(d, events, &t.Repairs)
	answer(d, events, rounds, &t.Repairs)
	rounds, after = merge(d, rounds, after, &t.Repairs)
	if t.Format != wire.Chat {
		env.instructions = append(env.instructions, leading(d, rounds)...)
	}
	for _, r := range rounds {
		for _, c := range r.calls {
			env.calls = append(env.calls, c.part)
		}
		for _, p := range r.parts {
			env.reasoning = env.reasoning || p.kind == partReasoning
		}
	}
	if env.model == "" {
		env.model = "unknown"
	}
	t.Model = env.model
	t.Before, t.After = d.envelope(env)
	render(t, d, rounds, after)
	checkUsage(t)
}

// group makes rounds of the events; results are placed later.
func group(d dialect, events []event, rep *Repairs) (rounds []*round, after []event) {
	open := map[string]*round{}
	for i, ev := range events {
		switch ev.kind {
		case evModel:
			r := open[ev.step]
			if ev.step == "" || r == nil {
				r = &round{before: after, byID: map[string]*callRef{}}
				after = nil
				rounds = append(rounds, r)
				if ev.step != "" {
					open[ev.step] = r
				}
			}
			r.add(i, ev, rep)
		case evResult:
		case evUser, evInstruction, evItem:
			if ev.raw != nil || len(ev.parts) > 0 {
				after = append(after, ev)
			}
		}
	}
	return rounds, after
}

func (r *round) add(at int, ev event, rep *Repairs) {
	if ev.usage != nil {
		r.usage = ev.usage
	}
	for _, p := range ev.parts {
		if p.kind == partCall {
			old := r.byID[p.id]
			if old != nil && bytes.Equal(old.part.raw, p.raw) {
				rep.Duplicates++
				continue
			}
			c := &callRef{part: p, round: r, at: at}
			if old == nil {
				r.byID[p.id] = c
			}
			r.calls = append(r.calls, c)
		}
		r.parts = append(r.parts, p)
	}
}

// answer gives every call its result: the latest call before it with its id, else the first after it.
func answer(d dialect, events []event, rounds []*round, rep *Repairs) {
	byID := map[waits][]*callRef{}
	for _, r := range rounds {
		for _, c := range r.calls {
			w := waits{c.part.id, c.part.result}
			byID[w] = append(byID[w], c)
			if c.part.result == "local_shell_call_output" { // Codex answers it so
				w.output = "function_call_output"
				byID[w] = append(byID[w], c)
			}
		}
	}
	for _, refs := range byID {
		sort.SliceStable(refs, func(a, b int) bool { return refs[a].at < refs[b].at })
	}
	for i, ev := range events {
		if ev.kind != evResult {
			continue
		}
		w := waits{ev.call, ev.output}
		if w.output == "" && d.format() == wire.Responses {
			w.output = "function_call_output"
		}
		to := target(byID[w], i)
		switch {
		case to == nil:
			rep.Orphans++
		case to.recorded && bytes.Equal(to.raw, ev.raw):
			rep.Duplicates++
		case to.recorded:
			rep.SecondResults++
		default:
			to.raw, to.recorded, to.seq = ev.raw, true, ev.seq
			to.round.results = append(to.round.results, to)
		}
	}
	used := map[string]int{}
	for _, r := range rounds {
		sort.SliceStable(r.results, func(a, b int) bool { return r.results[a].seq < r.results[b].seq })
		for _, c := range r.calls {
			if !c.recorded {
				rep.Unanswered++
				c.raw = d.result(c.part, []part{d.text(Unanswered, false)}, false)
				r.results = append(r.results, c)
			}
		}
		rename(d, r, used, rep)
	}
}

// waits is what a result must bring to answer a call: the id and, for Responses, the type of item.
type waits struct{ id, output string }

// target is the call that a result at place i answers: the latest one before it, or the first of its step that still
// waits if the step used the id twice; the first behind it if none is before. The calls are in order.
func target(refs []*callRef, i int) *callRef {
	if len(refs) == 0 {
		return nil
	}
	k := max(sort.Search(len(refs), func(k int) bool { return refs[k].at > i })-1, 0)
	to := refs[k]
	for ; k >= 0 && refs[k].round == to.round; k-- {
		if !refs[k].recorded {
			to = refs[k]
		}
	}
	return to
}

// rename gives a call that repeats an id another one, where the format wants ids to be unique: over the request for
// Anthropic and Responses (wire.md A24, R2), in one step for Chat.
func rename(d dialect, r *round, used map[string]int, rep *Repairs) {
	if d.format() == wire.Chat {
		used = map[string]int{}
	}
	byRaw := map[string][]int{}
	for i, p := range r.parts {
		if p.kind == partCall {
			byRaw[string(p.raw)] = append(byRaw[string(p.raw)], i)
		}
	}
	for _, c := range r.calls {
		id := c.part.id
		if d.format() == wire.Anthropic {
			id = anthropic{}.wireID(id)
		} else if id == "" {
			id = "call"
		}
		for base := id; used[id] > 0; {
			used[base]++
			id = base + "-" + strconv.Itoa(used[base])
		}
		used[id] = 1
		if id == c.part.id {
			continue
		}
		rep.RenamedCalls++
		old := string(c.part.raw)
		c.part.id, c.part.raw, c.raw = id, d.rename(c.part.raw, id), d.rename(c.raw, id)
		at := byRaw[old]
		r.parts[at[0]] = c.part
		byRaw[old] = at[1:]
	}
}

// merge leaves out generations that hold nothing, and makes one of two that have nothing to answer between them: no
// body may end with what the model itself said (wire.md A4).
func merge(d dialect, in []*round, after []event, rep *Repairs) (out []*round, rest []event) {
	var carried []event
	for _, r := range in {
		r.before = append(carried, r.before...)
		carried = nil
		if !says(d, r.parts) {
			rep.AbortedSteps++
			carried = r.before
			continue
		}
		if len(out) > 0 && len(r.before) == 0 && len(out[len(out)-1].calls) == 0 {
			rep.MergedSteps++
			last := out[len(out)-1]
			last.parts = append(last.parts, r.parts...)
			last.calls, last.results = r.calls, r.results
			if last.usage != nil && r.usage != nil {
				u := *last.usage
				u.Output += r.usage.Output
				last.usage = &u
			}
			continue
		}
		out = append(out, r)
	}
	return out, append(carried, after...)
}

// says is false for a generation that holds nothing, or reasoning alone where the format has no place for that
// (wire.md C4, R4).
func says(d dialect, parts []part) bool {
	if d.format() == wire.Anthropic {
		return len(parts) > 0
	}
	for _, p := range parts {
		if p.kind != partReasoning {
			return true
		}
	}
	return false
}

// leading takes the instructions in front of the history out of it, for formats that keep them elsewhere.
func leading(d dialect, rounds []*round) (out []part) {
	if len(rounds) == 0 || d.format() != wire.Anthropic {
		return nil
	}
	r := rounds[0]
	for len(r.before) > 0 && r.before[0].kind == evInstruction {
		out = append(out, r.before[0].parts...)
		r.before = r.before[1:]
	}
	return out
}

// render writes messages and boundaries.
func render(t *Task, d dialect, rounds []*round, after []event) {
	var prev *round
	for i, r := range rounds {
		start := clientSide(t, d, prev, r.before)
		t.Boundaries = append(t.Boundaries, Boundary{Messages: len(t.Messages), TurnStart: start || i == 0, Usage: r.usage})
		t.Messages = append(t.Messages, d.model(r.parts)...)
		prev = r
	}
	if prev == nil && len(after) == 0 {
		return
	}
	n := len(t.Messages)
	start := clientSide(t, d, prev, after)
	asks := prev != nil && prev.answered()
	for _, ev := range after {
		asks = asks || ev.kind == evUser
	}
	if asks && len(t.Messages) > n {
		t.Boundaries = append(t.Boundaries, Boundary{Messages: len(t.Messages), TurnStart: start || prev == nil})
	}
}

// clientSide writes what stands between two generations: the results of the first, then what the client said. It
// reports whether that opens a turn: on Anthropic's wire a message that holds a result never does (DESIGN §3.1).
func clientSide(t *Task, d dialect, prev *round, events []event) (opens bool) {
	var blocks []json.RawMessage
	if prev != nil {
		for _, c := range prev.results {
			blocks = append(blocks, c.raw)
		}
	}
	results := len(blocks)
	for _, ev := range events {
		opens = opens || ev.kind == evUser
		blocks = append(blocks, d.client(ev)...)
	}
	if prev == nil && !opens {
		t.Repairs.Openers++
		blocks = append(blocks, d.client(user(d.text(missingHead, false)))...)
		opens = true
	}
	if len(blocks) == 0 {
		return false
	}
	if d.format() != wire.Anthropic {
		t.Messages = append(t.Messages, blocks...)
		return opens
	}
	t.Messages = append(t.Messages, object("role", `"user"`, "content", array(blocks)))
	return opens && results == 0
}
