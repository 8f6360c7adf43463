package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
	"github.com/ullage/ullage/pkg/transcript"
)

type replayCmd struct {
	cli.Knobs `embed:"" group:"Operation:"`
	Files     []string      `arg:"" name:"file" help:"Transcripts, session files, request bodies or logs of agents; formats are told apart by content. Directories are read whole."`
	Window    int           `default:"200000" placeholder:"TOKENS" help:"Context window to play in."`
	JSON      bool          `name:"json" help:"One JSON object a boundary, then a summary object."`
	All       bool          `help:"In the table, show every boundary; without it only those at which something happened."`
	Out       string        `type:"path" placeholder:"DIR" help:"Write each view as the request body the provider would get: DIR/<task>/<step>.json."`
	Data      string        `type:"path" placeholder:"DIR" help:"Play on a data directory, going on behind the last recorded step. Default: a new one, removed afterwards."`
	Rules     string        `type:"existingfile" placeholder:"FILE" help:"Tool rules (YAML) laid over the built-in table."`
	LLM       cli.LLM       `embed:"" envprefix:"ULLAGE_" group:"Model:"`
	Deadline  time.Duration `name:"fold-deadline" default:"20s" help:"How long a step waits for a floor summary."`
	Pace      time.Duration `placeholder:"DURATION" help:"Time that a step takes, as with an agent whose model thinks. Summaries asked for ahead then land when they land; without it the replay waits for each."`
	LogLevel  string        `enum:"debug,info,warn,error" default:"warn" help:"What is logged on standard error."`
}

// Help is shown below the usage of replay.
func (replayCmd) Help() string {
	return `Each task is played as the agent did, message by message, through preflights and steps on a running pipeline:
record, tool-finished events, minting, the operation, the floor. Between steps it waits until mints and folds ahead have
settled, so two fresh runs print the same digests (with a model behind the floor, if it answers the same). Exit status: 0 also where a file is in a format that is not claimed; 1 for an error.`
}

// Run plays the files.
func (c *replayCmd) Run(ctx contextArg) error {
	budget, err := c.Budget(c.Window)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	model, err := modelOf(c.LLM)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	files, err := expand(c.Files)
	if err != nil {
		return err
	}
	dir := c.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "ullage-replay-"); err != nil {
			return fmt.Errorf("replay: make a data directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	log := cli.Common{LogLevel: c.LogLevel, LogFormat: "text"}.Logger()
	n, err := node.Open(ctx, node.Config{
		Name: "replay", Dir: dir, Gateway: true, Minter: true, Summarizer: true,
		Budget: budget, Rules: c.Rules, Model: model, Deadline: c.Deadline, Log: log,
	})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	p := &player{node: n, out: c.Out, pace: c.Pace, deadline: c.Deadline, progress: newProgress(len(files))}
	if c.JSON {
		p.show = &jsonLines{w: out}
	} else {
		p.show = &table{w: out, all: c.All}
	}
	err = p.run(ctx, files)
	p.progress.end()
	return errors.Join(err, out.Flush(), n.Close())
}

// expand names the files of directories, in order.
func expand(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if !st.IsDir() {
			out = append(out, name)
			continue
		}
		err = filepath.WalkDir(name, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("replay: read directory %s: %w", name, err)
		}
	}
	return out, nil
}

// shower prints a replay as it goes.
type shower interface {
	file(f *transcript.File, unclaimed error)
	task(t *transcript.Task)
	line(l *compactor.Line)
	failed(err error)
	summary(s *replaySummary) error
}

// player plays transcripts through a running node.
type player struct {
	node     *node.Node
	out      string
	show     shower
	progress *progress
	seen     map[string]string // task names of this run, and the file that had them
	sum      replaySummary
	pace     time.Duration
	deadline time.Duration // of a fold
	patience time.Duration // with the next fold that is asked for ahead; 0: three times the deadline
	// settle waits between steps; tests replace it.
	settle func(ctx context.Context, key record.Key, seq uint64) error
}

// run starts the node's parts and plays the files one after the other.
func (p *player) run(ctx context.Context, files []string) error {
	parts, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if p.settle == nil {
		p.settle = p.wait
	}
	p.seen = make(map[string]string)
	g, parts := errgroup.WithContext(parts)
	g.Go(func() error { return p.node.Run(parts) })
	g.Go(func() error {
		defer stop()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		context.AfterFunc(parts, cancel)
		for _, name := range files {
			if err := p.file(ctx, name); err != nil {
				return err
			}
		}
		p.sum.finish()
		p.sum.used(p.node.Model.Costs())
		if err := p.show.summary(&p.sum); err != nil {
			return err
		}
		if n := len(p.sum.Failed); n > 0 {
			return fmt.Errorf("replay: %s could not be played to the end; the summary names them", plural(n, "task"))
		}
		return nil
	})
	return g.Wait()
}

func (p *player) file(ctx context.Context, name string) error {
	f, err := transcript.ReadFile(name)
	if errors.Is(err, transcript.ErrUnclaimed) {
		p.sum.unclaimed(name, err)
		p.show.file(&transcript.File{Path: name}, err)
		p.progress.file(name, 0)
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	steps := 0
	for i := range f.Tasks {
		steps += len(f.Tasks[i].Boundaries)
	}
	p.progress.file(name, steps)
	p.show.file(f, nil)
	p.sum.begin(f)
	for i := range f.Tasks {
		if err := p.task(ctx, name, &f.Tasks[i]); err != nil {
			err = fmt.Errorf("replay %s: %w", name, err)
			if ctx.Err() != nil || !p.sum.failed(f.Tasks[i].ID, err) {
				return err
			}
			p.show.failed(err)
		}
	}
	return nil
}

// taskName is the task's name on the record: its own, unless another file of this run has it.
func (p *player) taskName(file, id string) string {
	name := id
	for n := 2; ; n++ {
		if other, taken := p.seen[name]; !taken || other == file {
			p.seen[name] = file
			return name
		}
		name = fmt.Sprintf("%.58s-%d", id, n)
	}
}

func (p *player) task(ctx context.Context, file string, t *transcript.Task) error {
	key := record.Key{Tenant: gateway.DefaultTenant, Task: p.taskName(file, t.ID)}
	p.show.task(t)
	done, err := p.node.Compactor.Steps(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNoTask) {
		return err
	}
	// The run that recorded these may have ended before their mints did, or the fold that was asked for last.
	if n := len(done); n > 0 {
		if err := p.settle(ctx, key, done[n-1].Seq); err != nil {
			return err
		}
		last := compactor.LineOf(key, "", &done[n-1].Step)
		if p.pace == 0 {
			if err := p.landed(ctx, key, &last); err != nil {
				return err
			}
		}
	}
	reduced := false // our view is no longer what was recorded
	var before *engine.Usage
	for i := range t.Boundaries {
		began := time.Now()
		b := &t.Boundaries[i]
		body := t.Body(b.Messages)
		kinds := []engine.Boundary{engine.Step}
		if b.TurnStart {
			kinds = []engine.Boundary{engine.Preflight, engine.Step}
		}
		for _, kind := range kinds {
			var line compactor.Line
			var view []byte
			if len(done) > 0 { // played before: from the record
				st := &done[0]
				done = done[1:]
				line = compactor.LineOf(key, p.node.Replica.Fence(key, st.Seq), &st.Step)
				if line.Boundary != kind.String() {
					return fmt.Errorf("task %s: the data directory holds another run (a %s where the transcript has a %s); use a new one", key.Task, line.Boundary, kind)
				}
				if p.out != "" {
					d, err := p.node.Compactor.At(ctx, key, line.Step, kind)
					if err != nil {
						return err
					}
					view = d.Body
				}
			} else {
				req := compactor.Request{Boundary: kind, Format: t.Format, Body: body}
				if before != nil {
					req.Usage, req.GrowthOnly = &record.Usage{Usage: *before}, reduced
				}
				res, err := p.node.Compactor.Run(ctx, key, req)
				if hard, ok := errors.AsType[*compactor.HardLimitError](err); ok {
					res, err = hard.Result, nil
				}
				if err != nil {
					return err
				}
				if res.Invalid != nil {
					p.sum.invalid(key.Task, res)
				}
				line, view = res.Line(key), res.Body
				if err := p.settle(ctx, key, res.Seq); err != nil {
					return err
				}
				if p.pace == 0 {
					if err := p.landed(ctx, key, &line); err != nil {
						return err
					}
				}
			}
			before = nil
			line.File = file
			reduced = reduced || line.View != engine.Sum(body)
			p.sum.add(&line)
			p.show.line(&line)
			if err := p.write(key, &line, view); err != nil {
				return err
			}
		}
		before = b.Usage
		p.progress.step(key.Task)
		if err := p.keepPace(ctx, began); err != nil {
			return err
		}
	}
	p.node.Compactor.Forget(key)
	return nil
}

// wait returns when the mints that a step called for have ended and their forms are applied here, so that what the
// next step finds does not hang on timing.
func (p *player) wait(ctx context.Context, key record.Key, seq uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream := p.node.Bus.StreamOf(key.Task, bus.KindFrame)
	if err := p.node.Replica.Settle(ctx, bus.Pos{Stream: stream, Seq: seq, Epoch: p.node.Bus.Epoch(stream)}); err != nil {
		return err
	}
	return p.node.Replica.SettleForms(ctx, key)
}

// write writes a view to the output directory.
func (p *player) write(key record.Key, l *compactor.Line, view []byte) error {
	if p.out == "" {
		return nil
	}
	dir := filepath.Join(p.out, key.Task)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the views of task %s: %w", key.Task, err)
	}
	name := fmt.Sprintf("%04d.json", l.Step)
	if l.Boundary == engine.Preflight.String() {
		name = fmt.Sprintf("%04d.preflight.json", l.Step)
	}
	if err := os.WriteFile(filepath.Join(dir, name), view, 0o644); err != nil {
		return fmt.Errorf("write the view of step %d of task %s: %w", l.Step, key.Task, err)
	}
	return nil
}

// jsonLines prints the JSON contract.
type jsonLines struct{ w io.Writer }

func (j *jsonLines) print(v any) error {
	enc := json.NewEncoder(j.w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (j *jsonLines) file(*transcript.File, error) {}
func (j *jsonLines) task(*transcript.Task)        {}
func (j *jsonLines) failed(error)                 {}
func (j *jsonLines) line(l *compactor.Line) {
	if err := j.print(l); err != nil {
		slog.Error("print", slog.Any("because", err))
	}
}

func (j *jsonLines) summary(s *replaySummary) error {
	return j.print(map[string]any{"summary": s})
}
