package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/load"
	"github.com/ullage/ullage/internal/node"
)

// loadResult is what bench load prints. Times are milliseconds.
type loadResult struct {
	Tasks       int    `json:"tasks"`
	StepsEach   int    `json:"steps_each"`
	Window      int    `json:"window"`
	Concurrency int    `json:"concurrency"`
	Seed        uint64 `json:"seed"`

	Seconds        float64        `json:"seconds"`
	Steps          int            `json:"steps"`
	Preflights     int            `json:"preflights"`
	StepsPerSecond float64        `json:"steps_per_second"`
	Step           spreadMS       `json:"step_ms"`
	Preflight      spreadMS       `json:"preflight_ms"`
	ToolFinished   spreadMS       `json:"tool_finished_ms"`
	Outcomes       map[string]int `json:"outcomes"`
	Passes         int            `json:"passes"`
	Folds          int            `json:"folds"`
	Misses         int            `json:"misses"`
	TokensRaw      int            `json:"tokens_raw"`
	TokensSent     int            `json:"tokens_sent"`

	Expected       int      `json:"mints_expected"`
	Mints          int      `json:"mints"`
	Looked         int      `json:"calls_looked_at"` // by the minters, events and frames
	MintsPerSecond float64  `json:"mints_per_second"`
	MintLag        spreadMS `json:"mint_lag_ms"`
	SettleMS       float64  `json:"settle_ms"`
	Lost           int      `json:"mints_lost"`

	Memory       int64 `json:"peak_rss_bytes"` // of gateway and agents together; 0: not known on this system
	SessionBytes int   `json:"session_bytes"`
	Disk         int64 `json:"disk_bytes"`

	Derived  int      `json:"derived_again"`
	BothWays int      `json:"asked_both_ways"`
	Wrong    int      `json:"wrong"`
	Faults   []string `json:"faults,omitempty"`
}

type spreadMS struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()/10) / 100 }

func millis(s load.Spread) spreadMS { return spreadMS{s.N, ms(s.P50), ms(s.P99), ms(s.Max)} }

func rate(n int, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(int(float64(n)/took.Seconds()*10)) / 10
}

func (r *loadResult) take(f *load.Figures) {
	r.Seconds = float64(f.Took.Milliseconds()) / 1000
	r.Steps, r.Preflights, r.StepsPerSecond = f.Steps, f.Preflights, rate(f.Steps, f.Took)
	r.Step, r.Preflight, r.ToolFinished = millis(f.StepTime), millis(f.PreflightTime), millis(f.FinishedTime)
	r.Outcomes, r.Passes, r.Folds, r.Misses, r.TokensRaw, r.TokensSent = f.Outcomes, f.Passes, f.Folds, f.Misses, f.TokensRaw, f.TokensSent
	r.Derived, r.BothWays, r.Wrong, r.Faults = f.Derived, f.BothWays, f.Wrong, f.Faults
}

// fault notes a fault in words, of which only the first are kept.
func (r *loadResult) fault(format string, args ...any) {
	if len(r.Faults) < 50 {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

func (r *loadResult) right() bool { return r.Wrong == 0 && r.Lost == 0 && len(r.Faults) == 0 }

func (r *loadResult) table(w io.Writer) error {
	var b bytes.Buffer
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("load", "%s of %s, %d at once, in a window of %s", plural(r.Tasks, "task"), plural(r.StepsEach, "step"), r.Concurrency, group(r.Window))
	row("steps", "%s in %.1f s: %.1f a second", group(r.Steps), r.Seconds, r.StepsPerSecond)
	row("a step", "%s", r.Step)
	row("a preflight", "%s", r.Preflight)
	row("tool-finished", "%s", r.ToolFinished)
	row("views", "%s sent of %s tokens (%s %%); %s; %d passes, %s", group(r.TokensSent), group(r.TokensRaw), percent(r.TokensSent, r.TokensRaw), counts(r.Outcomes), r.Passes, plural(r.Folds, "fold"))
	row("mints", "%s of %s expected: %.1f a second; %s calls looked at; caught up %.0f ms after the last step", group(r.Mints), group(r.Expected), r.MintsPerSecond, group(r.Looked), r.SettleMS)
	row("mint lag", "%s", r.MintLag)
	if r.Memory > 0 {
		row("memory", "%s at the most, the agents' own included; sessions take %s", megabytes(r.Memory), megabytes(int64(r.SessionBytes)))
	} else {
		row("memory", "not known on this system; sessions take %s", megabytes(int64(r.SessionBytes)))
	}
	row("disk", "%s", megabytes(r.Disk))
	row("checked", "every view; %d derived again from the store, %d asked for both with a body and from the record; every mint", r.Derived, r.BothWays)
	if r.right() {
		row("found wrong", "nothing")
	} else {
		row("found wrong", "%d views or forms, %s lost", r.Wrong, plural(r.Lost, "mint"))
		for _, f := range r.Faults {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (s spreadMS) String() string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, at the most %.1f ms (%s)", s.P50, s.P99, s.Max, group(s.N))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func sessionBytes(n *node.Node) int {
	_, size := n.Compactor.Sessions()
	return size
}

// peakMemory is the largest resident size that this process has had, 0 where the system does not say.
func peakMemory() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// diskUse is the size of the files of a directory.
func diskUse(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		st, err := d.Info()
		if err == nil {
			sum += st.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("measure the data directory: %w", err)
	}
	return sum, nil
}

// meter shows on a terminal how far a load is.
type meter struct {
	*progress
	steps int
	mints *mintWatch
	lock  chan struct{} // one token: who holds it draws
	start time.Time
}

func newMeter(steps int, mints *mintWatch) *meter {
	m := &meter{progress: &progress{}, steps: steps, mints: mints, lock: make(chan struct{}, 1), start: time.Now()}
	if w, ok := cli.Terminal(os.Stderr); ok {
		m.width = w
	}
	return m
}

// step draws, unless another does or has just done.
func (m *meter) step(done int) {
	if m.width == 0 {
		return
	}
	select {
	case m.lock <- struct{}{}:
		defer func() { <-m.lock }()
	default:
		return
	}
	if time.Since(m.drawn) < 100*time.Millisecond {
		return
	}
	m.drawn = time.Now()
	fmt.Fprintf(os.Stderr, "\r\x1b[Kstep %d of %d  %.0f a second  %d mints", done, m.steps, rate(done, time.Since(m.start)), m.mints.forms())
}
