package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ullage/ullage/internal/load"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/minter"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/toolrule"
)

// mintWatch sees every mint of a minter.
type mintWatch struct {
	mu    sync.Mutex
	seen  map[mintOf]bool
	lags  []time.Duration // of each call's first form, from its entry on the log to the form on the log
	done  int             // calls looked at, those that come twice counted twice
	last  time.Time
	first time.Time
}

type mintOf struct {
	key  record.Key
	call engine.CallID
}

// watchMints puts a watch before a minter's observer. The minter must not run yet.
func watchMints(m *minter.Minter) *mintWatch {
	w := &mintWatch{seen: make(map[mintOf]bool)}
	told, now := m.Observe, m.Now
	m.Observe = func(e minter.Event) {
		w.take(e, now())
		if told != nil {
			told(e)
		}
	}
	return w
}

func (w *mintWatch) take(e minter.Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	of := mintOf{e.Key, e.Call}
	if !e.Minted || w.seen[of] {
		return
	}
	w.seen[of] = true
	w.lags = append(w.lags, e.Lag)
	if w.first.IsZero() {
		w.first = now
	}
	w.last = now
}

// forms is how many calls have a form.
func (w *mintWatch) forms() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lags)
}

func (w *mintWatch) into(r *loadResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Mints, r.Looked = len(w.lags), w.done
	r.MintLag = millis(load.SpreadOf(slices.Clone(w.lags)))
	if t := w.last.Sub(w.first).Seconds(); t > 0 {
		r.MintsPerSecond = rate(len(w.lags), w.last.Sub(w.first))
	}
}

// lostMints works out what the tool rules make of every call of the load, and looks for it in the store.
func lostMints(ctx context.Context, n *node.Node, c *benchLoadCmd, r *loadResult) error {
	options := toolrule.Options{PrecompactTokens: n.Config.Budget.Precompact}
	for task := range c.Tasks {
		key := load.Key(task)
		have, _, err := n.Store.Available(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNoTask) {
			return err
		}
		var bad error
		load.Calls(c.Seed, task, c.Steps, func(call toolrule.Call) {
			want, ok, err := n.Rules.Mint(call, options)
			switch got := have[call.ID]; {
			case err != nil:
				bad = errors.Join(bad, err)
			case !ok && len(got) > 0:
				r.fault("task %s: call %s has a form, and the rules make none", key.Task, call.ID)
			case !ok:
			case len(got) == 0:
				r.Expected++
				r.Lost++
				r.fault("task %s: call %s (%s) has no form", key.Task, call.ID, call.Name)
			case len(got) > 1 || !slices.Equal(got[0].Texts, want.Texts) || (got[0].Input == nil) != (want.Input == nil) || want.Input != nil && *got[0].Input != *want.Input:
				r.Expected++
				r.Wrong++
				r.fault("task %s: call %s (%s) has %d forms, or another one than the rules make", key.Task, call.ID, call.Name, len(got))
			default:
				r.Expected++
			}
		})
		if bad != nil {
			return bad
		}
	}
	return nil
}
