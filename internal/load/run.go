package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
)

// Run is one load. Its fields are set before [Run.Play] and not changed.
type Run struct {
	Addr        string // host and port of the gateway
	Seed        uint64
	Tasks       int
	Steps       int // of each task
	Concurrency int // tasks at once
	// SampleOneIn: one view in so many is made again in other ways, and compared.
	SampleOneIn int
	// Progress is told of every step, nil: nobody. It is called by many at once.
	Progress func(steps int)

	before, after []byte
	mu            sync.Mutex
	f             Figures
}

// maxFaults is how many faults are kept in words.
const maxFaults = 50

// Play plays all tasks. A task that the gateway answers with an error ends there, and counts as a fault; the others
// go on. The error is that of a load that was stopped.
func (l *Run) Play(ctx context.Context) (*Figures, error) {
	l.before, l.after = envelope()
	l.f.Outcomes = make(map[string]int)
	transport := &http.Transport{MaxIdleConns: 2 * l.Concurrency, MaxIdleConnsPerHost: 2 * l.Concurrency, DisableCompression: true}
	defer transport.CloseIdleConnections()
	h := &http.Client{Transport: transport}
	var g errgroup.Group
	g.SetLimit(l.Concurrency)
	start := time.Now()
	for task := range l.Tasks {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := l.player(task, h).play(ctx)
			if err != nil && ctx.Err() == nil {
				l.wrong("%v", err)
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("the load was stopped: %w", err)
	}
	l.f.Took = time.Since(start)
	l.f.finish()
	return &l.f, nil
}

func (l *Run) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Wrong++
	if len(l.f.Faults) < maxFaults {
		l.f.Faults = append(l.f.Faults, fmt.Sprintf(format, args...))
	}
}

func (l *Run) count(add func(f *Figures)) {
	l.mu.Lock()
	add(&l.f)
	steps := l.f.Steps
	l.mu.Unlock()
	if l.Progress != nil {
		l.Progress(steps)
	}
}

// name is the name of a load's task.
func name(task int) string { return fmt.Sprintf("load-%05d", task) }

// Key is the key of a load's task.
func Key(task int) record.Key { return record.Key{Tenant: gateway.DefaultTenant, Task: name(task)} }
