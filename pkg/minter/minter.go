// Package minter makes forms: it reads finished tool calls off the log, applies the tool rules, and publishes what it
// made. It has no store and keeps nothing: every form follows from the entry alone, so any number of minters compete
// for the work, and a repeated one changes nothing.
package minter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/blob"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/llm"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/toolrule"
	"github.com/ullage/ullage/pkg/wire"
)

// Minter mints. Its fields are set before [Minter.Run] and not changed.
type Minter struct {
	Bus     *bus.Bus
	Rules   *toolrule.Table
	Options toolrule.Options
	// Model answers rules of kind llm; nil: they are minted without one.
	Model llm.Completer
	Slots int // mints at once; 0: 16
	Log   *slog.Logger
	// Observe is told of each form made; nil: nobody.
	Observe func(Event)
	Now     func() time.Time
	// Delay holds every mint back by so long, for tests of what lateness does; 0 in production.
	Delay func(record.Key, engine.CallID) time.Duration
}

// Event tells of one call that was looked at.
type Event struct {
	Key    record.Key
	Call   engine.CallID
	Tool   string
	Rule   string
	Minted bool
	From   int // bytes
	To     int
	Took   time.Duration
	Lag    time.Duration // from the entry on the log to the form on the log
}

// Run mints until ctx ends, and lets the mints in hand finish.
func (m *Minter) Run(ctx context.Context) error {
	slots := m.Slots
	if slots == 0 {
		slots = 16
	}
	g, ctx := errgroup.WithContext(ctx)
	for left := slots; left > 0; left -= perWorker {
		n := min(left, perWorker)
		g.Go(func() error { return m.Bus.Mint(ctx, bus.MintConfig{Slots: n}, m.entry) })
	}
	return g.Wait()
}

// perWorker is how many slots share one worker of the bus. A worker asks each stream for one entry at a time and has to
// wait for the answer behind the stream's writers, so that a busy log is kept up with by several workers, not by one
// with many slots.
const perWorker = 4

// entry mints what one log entry calls for.
func (m *Minter) entry(ctx context.Context, msg bus.Msg) error {
	e, err := store.DecodeEntry(msg.Key, msg.Pos.Stream, msg.Pos.Seq, msg.Data)
	if err != nil {
		return bus.Permanent(err)
	}
	if err := e.Fill(func(ref record.Ref) ([]byte, error) { return m.Bus.Blobs().Get(ctx, msg.Key.Tenant, ref.Hash) }); err != nil {
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrDamaged) || errors.Is(err, store.ErrDamaged) {
			return bus.Permanent(err)
		}
		return bus.Retry(err, time.Second)
	}
	var calls []toolrule.Call
	switch {
	case e.Frame != nil:
		if calls, err = Calls(e.Frame); err != nil {
			return bus.Permanent(err)
		}
	case e.Finished != nil:
		calls = []toolrule.Call{finished(e.Finished)}
	}
	for i := range calls {
		if err := m.mint(ctx, msg, &calls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Minter) mint(ctx context.Context, msg bus.Msg, c *toolrule.Call) error {
	start := m.Now()
	if m.Delay != nil {
		if d := m.Delay(msg.Key, c.ID); d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return bus.Retry(ctx.Err(), time.Second)
			}
		}
	}
	form, ok, err := m.form(ctx, c)
	if err != nil {
		return err
	}
	ev := Event{Key: msg.Key, Call: c.ID, Tool: c.Name, Rule: form.Rule, Minted: ok, From: c.Tokens() * 4}
	if ok {
		texts := make([]engine.Text, len(c.Texts))
		for i := range c.Texts {
			texts[i] = engine.PlainText(c.Texts[i])
		}
		form.Check = engine.CheckOf(c.Name, string(c.Input), c.TextInput, texts, c.Media)
		entry := &record.Minted{ID: c.ID, Form: form, Input: form.Check.Input, Output: form.Check.Result}
		id, err := record.HashOf(entry)
		if err != nil {
			return bus.Permanent(fmt.Errorf("encode the form of call %q: %w", c.ID, err))
		}
		entry.Took = m.Now().Sub(start).Microseconds()
		encoded, err := record.Encode(entry)
		if err != nil {
			return bus.Permanent(fmt.Errorf("encode the form of call %q: %w", c.ID, err))
		}
		if _, err := m.Bus.Form(ctx, msg.Key, encoded, "form:"+msg.Key.Tenant+":"+msg.Key.Task+":"+id.String()); err != nil {
			if errors.Is(err, bus.ErrTooLarge) {
				return bus.Permanent(fmt.Errorf("publish the form of call %q: %w", c.ID, err))
			}
			return bus.Retry(fmt.Errorf("publish the form of call %q: %w", c.ID, err), time.Second)
		}
		for _, t := range form.Texts {
			ev.To += len(t)
		}
	}
	ev.Took = m.Now().Sub(start)
	ev.Lag = m.Now().Sub(msg.At)
	if m.Observe != nil {
		m.Observe(ev)
	}
	return nil
}

// form applies the rules, with a model where a rule asks for one and there is one.
func (m *Minter) form(ctx context.Context, c *toolrule.Call) (engine.Form, bool, error) {
	o := m.Options
	o.Model = o.Model && m.Model != nil
	form, ok, err := m.Rules.Mint(*c, o)
	ask, asks := errors.AsType[*toolrule.NeedsModel](err)
	if asks {
		said, lerr := m.Model.Complete(ctx, llm.Request{System: ask.System, Prompt: ask.Prompt, MaxTokens: ask.MaxTokens})
		if lerr == nil {
			if form, ok, err = m.Rules.Finish(*c, o, said.Text); err == nil {
				return form, ok, nil
			}
		} else {
			m.Log.Warn("a model did not answer a mint; the rule goes without", slog.String("rule", ask.Rule), slog.String("call", string(c.ID)), slog.Any("because", lerr))
		}
		o.Model = false
		form, ok, err = m.Rules.Mint(*c, o)
	}
	if err != nil {
		return form, false, bus.Permanent(fmt.Errorf("mint call %q of tool %s: %w", c.ID, c.Name, err))
	}
	return form, ok, nil
}

// Calls are the finished tool calls that a frame brings: results with the calls they answer.
func Calls(f *record.Frame) ([]toolrule.Call, error) {
	var items [][]byte
	for i := range f.Items {
		if it := &f.Items[i]; it.Raw != nil {
			items = append(items, it.Raw)
		}
	}
	if len(items) == 0 {
		return nil, nil
	}
	format := wire.Format(f.Format)
	before, after := []byte(`{"messages":[`), []byte(`]}`)
	if format == wire.Responses {
		before = []byte(`{"input":[`)
	}
	req, err := wire.Decode(format, wire.Join(before, after, items, nil))
	if err != nil {
		return nil, fmt.Errorf("decode the frame's messages: %w", err)
	}
	earlier := make(map[engine.CallID]*record.Call, len(f.Calls))
	for i := range f.Calls {
		earlier[f.Calls[i].ID] = &f.Calls[i]
	}
	s := engine.Reconstruct(req.Messages)
	var out []toolrule.Call
	for _, p := range s.Parts() {
		var c toolrule.Call
		var r *engine.Block
		switch {
		case p.Kind == engine.KindCall && p.RMsg >= 0:
			b := s.Block(p.Msg, p.Block)
			c = toolrule.Call{ID: b.ID, Name: b.Name, Input: []byte(b.Input.String()), TextInput: b.TextInput}
			r = s.Block(p.RMsg, p.RBlock)
		case p.Kind == engine.KindResult:
			r = s.Block(p.Msg, p.Block)
			old := earlier[r.ID]
			if old == nil {
				continue // its call is not in the record
			}
			c = toolrule.Call{ID: old.ID, Name: old.Name, Input: []byte(old.Input), TextInput: old.TextInput}
		default:
			continue
		}
		c.IsError, c.Media = r.IsError, r.Media
		for i := range r.Texts {
			c.Texts = append(c.Texts, r.Texts[i].String())
		}
		out = append(out, c)
	}
	return out, nil
}

func finished(f *record.Finished) toolrule.Call {
	c := toolrule.Call{ID: f.ID, Name: f.Name, Input: f.Input, IsError: f.IsError, Disposable: f.Disposable}
	texts, media := wire.EventTexts(f.Output)
	c.Media = media
	for i := range texts {
		c.Texts = append(c.Texts, texts[i].String())
	}
	return c
}
