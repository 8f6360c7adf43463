package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/transcript"
)

type benchReplayCmd struct {
	cli.Knobs `embed:"" group:"Operation:"`
	Files     []string  `arg:"" name:"file" help:"Transcripts, or directories of them."`
	Windows   []int     `default:"32000,64000,200000" placeholder:"TOKENS,…" help:"Context windows to play in."`
	Rooms     []float64 `default:"0,0.5" placeholder:"RATIO,…" help:"Values of COMPACTION_MIN_ROOM_RATIO."`
	Large     int       `default:"100000" placeholder:"TOKENS" help:"Files whose history grows beyond this have a row of their own."`
	LogLevel  string    `enum:"debug,info,warn,error" default:"error" help:"What is logged on standard error."`
}

// Help is shown below the usage of bench replay.
func (benchReplayCmd) Help() string {
	return `Every transcript is replayed through the real pipeline in each window and with each room ratio, as gateway replay does
it. What is printed is Markdown: one table over all files together, and one for each window with a row for each large file.
A rewrite is a boundary whose view changed bytes of the prefix sent before it.`
}

// Run replays and prints.
func (c *benchReplayCmd) Run(ctx contextArg) error {
	files, err := expand(c.Files)
	if err != nil {
		return err
	}
	type run struct {
		window int
		room   float64
		sum    *replaySummary
	}
	var runs []run
	for _, room := range c.Rooms {
		for _, window := range c.Windows {
			sum, err := c.play(ctx, files, window, room)
			if err != nil {
				return fmt.Errorf("bench replay, window %d, room %v: %w", window, room, err)
			}
			runs = append(runs, run{window, room, sum})
		}
	}
	head := func(first string) {
		fmt.Printf("| %s | steps | passes | per 100 | folds | per 100 | longest run | rewrites | tight steps | sent %% | outcomes |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n", first)
	}
	row := func(first string, t *tally) {
		fmt.Printf("| %s | %s | %s | %.1f | %d | %.1f | %d | %d | %s | %s | %s |\n", first, group(t.Steps), group(t.Passes), t.PassesPer, t.Folds, t.FoldsPer,
			t.LongestRun, t.Rewrites, group(t.Tight), percent(t.TokensSent, t.TokensRaw), counts(t.Outcomes))
	}
	head("window, room")
	for _, r := range runs {
		row(fmt.Sprintf("%s, %v", group(r.window), r.room), &r.sum.tally)
	}
	for _, r := range runs {
		fmt.Printf("\nWindow %s, room %v, files beyond %s tokens:\n\n", group(r.window), r.room, group(c.Large))
		head("file")
		for _, f := range r.sum.Files {
			if f.tally != nil && f.PeakRaw > c.Large {
				row(filepath.Base(f.File), f.tally)
			}
		}
		for _, v := range r.sum.Invalid {
			fmt.Printf("\nrefused by the validator, sent unreduced: %s\n", v)
		}
		for _, v := range r.sum.Failed {
			fmt.Printf("\nstopped: %s\n", v)
		}
	}
	return nil
}

// play replays the files once, on a data directory of their own.
func (c *benchReplayCmd) play(ctx context.Context, files []string, window int, room float64) (_ *replaySummary, err error) {
	c.MinRoomRatio = room
	budget, err := c.Budget(window)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ullage-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	log := cli.Common{LogLevel: c.LogLevel, LogFormat: "text"}.Logger()
	n, err := node.Open(ctx, node.Config{Name: "bench", Dir: dir, Gateway: true, Minter: true, Summarizer: true, Budget: budget, Deadline: 20 * time.Second, Log: log})
	if err != nil {
		return nil, err
	}
	p := &player{node: n, show: summaryOnly{}, progress: newProgress(len(files))}
	start := time.Now()
	err = p.run(ctx, files)
	p.progress.end()
	log.Info("replayed", slog.Int("window", window), slog.Float64("room", room), slog.Duration("took", time.Since(start)))
	if len(p.sum.Failed) > 0 && ctx.Err() == nil {
		err = nil // the table names them
	}
	return &p.sum, errors.Join(err, n.Close())
}

// summaryOnly shows nothing of a replay: its summary is read when it has ended.
type summaryOnly struct{}

func (summaryOnly) file(*transcript.File, error) {}
func (summaryOnly) task(*transcript.Task)        {}
func (summaryOnly) line(*compactor.Line)         {}
func (summaryOnly) failed(error)                 {}

func (summaryOnly) summary(*replaySummary) error { return nil }

var _ shower = summaryOnly{}
