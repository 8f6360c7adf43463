package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/load"
	"github.com/ullage/ullage/internal/node"
)

type benchLoadCmd struct {
	cli.Knobs   `embed:"" group:"Operation:"`
	Tasks       int           `default:"200" help:"Agents' tasks."`
	Steps       int           `default:"40" help:"Steps of each."`
	Window      int           `default:"64000" placeholder:"TOKENS" help:"Context window."`
	Concurrency int           `placeholder:"N" help:"Tasks at once. Default: all of them."`
	Seed        uint64        `default:"1" help:"The agents do the same for the same seed."`
	Sample      int           `default:"10" placeholder:"N" help:"One view in N is made again, from the store and the other way of body and record, and compared."`
	MintSlots   int           `default:"16" help:"Mints at once."`
	Settle      time.Duration `default:"2m" help:"How long the minters may take to catch up after the last step."`
	Data        string        `type:"path" placeholder:"DIR" help:"Data directory, which must be new or empty. Default: one of its own, removed afterwards."`
	JSON        bool          `name:"json" help:"Print one JSON object."`
	CPUProfile  string        `name:"cpu-profile" type:"path" placeholder:"FILE" help:"Write a CPU profile of the load."`
	LogLevel    string        `enum:"debug,info,warn,error" default:"warn" help:"What is logged on standard error."`
}

// Help is shown below the usage of bench load.
func (benchLoadCmd) Help() string {
	return `A gateway with an embedded log, minter and summariser is started on a free port of this machine. Each agent posts
tool-finished events as its tools finish, preflights and steps with bodies or from the record, and the provider's usage.
Every view is checked: legal for the provider, within the window unless its outcome is hard_limit, its prefix kept where
nothing was reduced; a sample of them is derived a second time. In the end every form that the tool rules call for must be
there. Agents do not think: each sends its next call as soon as the last is answered, so times are those of a gateway at
its limit. Exit status: 0 if all was right, 2 if a view was wrong or a mint lost.`
}

// Run runs the load.
func (c *benchLoadCmd) Run(ctx contextArg) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("bench load: %w", err)
	}
	budget, err := c.Budget(c.Window)
	if err != nil {
		return fmt.Errorf("bench load: %w", err)
	}
	dir, remove, err := c.dir()
	if err != nil {
		return fmt.Errorf("bench load: %w", err)
	}
	defer remove()
	n, err := node.Open(ctx, node.Config{
		Name: "bench", Dir: dir, Gateway: true, Minter: true, Summarizer: true, Budget: budget,
		Slots: c.MintSlots, Log: cli.Common{LogLevel: c.LogLevel, LogFormat: "text"}.Logger(),
	})
	if err != nil {
		return fmt.Errorf("bench load: %w", err)
	}
	r, err := c.measure(ctx, n, dir)
	err = errors.Join(err, n.Close())
	if err != nil {
		return fmt.Errorf("bench load: %w", err)
	}
	if err := r.print(os.Stdout, c.JSON); err != nil {
		return fmt.Errorf("bench load: print: %w", err)
	}
	if !r.right() {
		return &cli.ExitError{Code: 2, Err: fmt.Errorf("bench load: %d of what was checked was wrong, %d of %d mints are missing", r.Wrong, r.Lost, r.Expected)}
	}
	return nil
}

func (c *benchLoadCmd) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"--tasks", c.Tasks}, {"--steps", c.Steps}, {"--sample", c.Sample}, {"--mint-slots", c.MintSlots}} {
		if f.value < 1 {
			return fmt.Errorf("%s is %d; it must be at least 1", f.name, f.value)
		}
	}
	if c.Concurrency < 0 {
		return fmt.Errorf("--concurrency is %d; it must be at least 1, or left out", c.Concurrency)
	}
	if c.Concurrency == 0 || c.Concurrency > c.Tasks {
		c.Concurrency = c.Tasks
	}
	return nil
}

// dir is the data directory, and what is to be done about it in the end.
func (c *benchLoadCmd) dir() (dir string, remove func(), err error) {
	if c.Data == "" {
		if dir, err = os.MkdirTemp("", "ullage-bench-"); err != nil {
			return "", nil, fmt.Errorf("make a data directory: %w", err)
		}
		return dir, func() { _ = os.RemoveAll(dir) }, nil // a leftover in the system's own place for them does no harm
	}
	switch names, err := os.ReadDir(c.Data); {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", nil, fmt.Errorf("look at the data directory: %w", err)
	case len(names) > 0:
		return "", nil, fmt.Errorf("the data directory %s is not empty, and a load on top of another measures neither; give a new one", c.Data)
	}
	return c.Data, func() {}, nil
}

// measure runs the node, its HTTP API and the load, and looks at what is left.
func (c *benchLoadCmd) measure(ctx context.Context, n *node.Node, dir string) (*loadResult, error) {
	mints := watchMints(n.Minter)
	l, err := cli.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if c.CPUProfile != "" {
		f, err := os.Create(c.CPUProfile)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("write the CPU profile: %w", err), l.Close())
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, errors.Join(fmt.Errorf("write the CPU profile: %w", err), l.Close())
		}
		defer pprof.StopCPUProfile()
	}
	meter := newMeter(c.Tasks*c.Steps, mints)
	run := &load.Run{Addr: l.Addr().String(), Seed: c.Seed, Tasks: c.Tasks, Steps: c.Steps, Concurrency: c.Concurrency, SampleOneIn: c.Sample, Progress: meter.step}
	r := &loadResult{Tasks: c.Tasks, StepsEach: c.Steps, Window: c.Window, Concurrency: c.Concurrency, Seed: c.Seed}

	parts, stopParts := context.WithCancel(context.WithoutCancel(ctx))
	defer stopParts()
	g, running := errgroup.WithContext(parts)
	api, stopAPI := context.WithCancel(running)
	defer stopAPI()
	g.Go(func() error { return n.Run(running) })
	g.Go(func() error { return n.Server().Serve(api, l) })
	g.Go(func() error {
		defer stopParts()
		work, cancel := context.WithCancel(ctx)
		defer cancel()
		context.AfterFunc(running, cancel)
		f, err := run.Play(work)
		meter.clear()
		if err != nil {
			return err
		}
		r.take(f)
		if err := c.settle(work, n, r, meter); err != nil {
			return err
		}
		stopAPI()
		mints.into(r)
		r.Memory, r.SessionBytes = peakMemory(), sessionBytes(n)
		if r.Disk, err = diskUse(dir); err != nil {
			return err
		}
		return lostMints(work, n, c, r)
	})
	return r, g.Wait()
}

// settle waits until the minters owe nothing and their forms are applied here. Running out of patience is no error: what
// is missing then counts as lost.
func (c *benchLoadCmd) settle(ctx context.Context, n *node.Node, r *loadResult, m *meter) error {
	start := time.Now()
	wait, cancel := context.WithTimeout(ctx, c.Settle)
	defer cancel()
	err := n.Replica.Settle(wait)
	for task := 0; err == nil && task < c.Tasks; task++ {
		err = n.Replica.SettleForms(wait, load.Key(task))
	}
	m.clear()
	r.SettleMS = ms(time.Since(start))
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		r.fault("the minters did not catch up within %v after the last step", c.Settle)
		return nil
	}
	return err
}

// print shows the result.
func (r *loadResult) print(w *os.File, asJSON bool) error {
	if !asJSON {
		return r.table(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
