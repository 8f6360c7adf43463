package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
)

type dlqCmd struct {
	List   dlqListCmd   `cmd:"" default:"withargs" help:"List the dead letters, oldest first."`
	Show   dlqShowCmd   `cmd:"" help:"Show one dead letter whole."`
	Replay dlqReplayCmd `cmd:"" help:"Have the work of dead letters done once more, and drop the letters."`
	Drop   dlqDropCmd   `cmd:"" help:"Drop dead letters; the record stays as it is."`
}

// Help is shown below the usage of dlq.
func (dlqCmd) Help() string {
	return `A dead letter is work in the background that failed for good. Nothing waits for it. A mint: a finished tool call
that no minter could make a form of stays in the view as it is, until a floor summary takes it in. A fold: a summary that
was to be made ahead, anew from raw or better is made when a step needs it. Exit status: 0 done; 1 an error.`
}

// logFlags are the flags of a verb that opens the log alone: of a data directory, or of a cluster.
type logFlags struct {
	data    `embed:""`
	NATS    string      `name:"nats" env:"ULLAGE_NATS" placeholder:"URL" help:"The log of a cluster instead of a data directory's."`
	Cluster cli.Cluster `embed:"" group:"Cluster:"`
}

// with opens the log, calls f, and closes it again.
func (c *logFlags) with(ctx context.Context, f func(context.Context, *bus.Bus) error) error {
	if err := c.Cluster.Check(c.NATS); err != nil {
		return fmt.Errorf("dlq: %w", err)
	}
	secure, err := c.Cluster.TLS()
	if err != nil {
		return fmt.Errorf("dlq: %w", err)
	}
	if c.NATS == "" {
		if _, err := os.Stat(filepath.Join(c.Data, "log")); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("dlq: there is no log of Ullage's in %s; name a data directory with --data, or a cluster with --nats", c.Data)
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.Open(ctx, node.Config{
		Name: "dlq", Dir: c.Data, NATS: c.NATS, Creds: c.Cluster.Creds, TLS: secure,
		NATSMonitors: c.Cluster.Monitor, NATSSynced: c.Cluster.Synced, Log: log,
	})
	if err != nil {
		return fmt.Errorf("dlq: %w", err)
	}
	return wrap("dlq", errors.Join(f(ctx, n.Bus), n.Close()))
}

type dlqListCmd struct {
	logFlags `embed:""`
	JSON     bool `name:"json" help:"One JSON object a letter."`
}

// Run lists.
func (c *dlqListCmd) Run(ctx contextArg) error {
	return c.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		letters, err := b.DeadLetters(ctx)
		if err != nil {
			return err
		}
		return printLetters(os.Stdout, letters, c.JSON)
	})
}

// letter is a dead letter as it is printed: of a fold's request, the size alone.
type letter struct {
	ID     uint64    `json:"id"`
	At     time.Time `json:"at"`
	Work   string    `json:"work"` // mint or fold
	Tenant string    `json:"tenant,omitempty"`
	Task   string    `json:"task,omitempty"`
	bus.DeadLetter
	Fold *letterFold `json:"fold,omitempty"`
}

type letterFold struct {
	Kind  string `json:"kind"`
	Key   string `json:"key"`
	Bytes int    `json:"bytes"`
}

func letterOf(l bus.DeadLetter) letter {
	out := letter{ID: l.ID, At: l.At, Work: "mint", DeadLetter: l}
	if of, ok := l.Task(); ok {
		out.Tenant, out.Task = of.Tenant, of.Task
	}
	if l.Fold != nil {
		out.Work = "fold"
		out.Fold = &letterFold{Kind: l.Fold.Kind, Key: l.Fold.Key, Bytes: len(l.Fold.Payload)}
	}
	return out
}

// work says what was to be done, as "mint" or "fold ahead".
func (l letter) work() string {
	if l.Fold == nil || l.Fold.Kind == "" {
		return l.Work
	}
	return l.Work + " " + l.Fold.Kind
}

// task is tenant and task, "-" where the letter does not say.
func (l letter) task() string {
	if l.Task == "" {
		return "-"
	}
	return l.Tenant + "/" + l.Task
}

func printLetters(w io.Writer, letters []bus.DeadLetter, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, l := range letters {
			if err := enc.Encode(letterOf(l)); err != nil {
				return fmt.Errorf("print letter %d: %w", l.ID, err)
			}
		}
		return nil
	}
	if len(letters) == 0 {
		fmt.Fprintln(w, "no dead letters")
		return nil
	}
	fmt.Fprintf(w, "%6s  %-20s %-10s %5s  %-12s %-24s %s\n", "id", "at", "reason", "tries", "work", "task", "because")
	for _, dead := range letters {
		l := letterOf(dead)
		fmt.Fprintf(w, "%6d  %-20s %-10s %5d  %-12s %-24s %s\n", l.ID, l.At.UTC().Format(time.RFC3339), l.Reason, l.Deliveries, l.work(), l.task(), shorten(l.LastError, 120))
	}
	return nil
}

type dlqShowCmd struct {
	logFlags `embed:""`
	ID       uint64 `arg:"" help:"Which letter; 'gateway dlq list' gives the numbers."`
}

// Run shows one.
func (c *dlqShowCmd) Run(ctx contextArg) error {
	return c.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		letters, err := b.DeadLetters(ctx)
		if err != nil {
			return err
		}
		for _, l := range letters {
			if l.ID == c.ID {
				return showLetter(os.Stdout, l)
			}
		}
		return fmt.Errorf("there is no dead letter %d; 'gateway dlq list' lists them", c.ID)
	})
}

func showLetter(w io.Writer, dead bus.DeadLetter) error {
	l := letterOf(dead)
	text := fmt.Sprintf("letter   %d\nat       %s\nwork     %s\ntask     %s\nentry    %d of stream %s\nsubject  %s\nreason   %s, after %d deliveries\nbecause  %s\n",
		l.ID, l.At.UTC().Format(time.RFC3339), l.work(), l.task(), l.Seq, l.Stream, l.Subject, l.Reason, l.Deliveries, l.LastError)
	if dead.Fold != nil {
		text += fmt.Sprintf("key      %s\nrequest  %d bytes\n", l.Fold.Key, l.Fold.Bytes)
		if utf8.Valid(dead.Fold.Payload) && l.Fold.Bytes > 0 {
			text += string(dead.Fold.Payload) + "\n"
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// which letters a verb acts on.
type whichLetters struct {
	IDs []uint64 `arg:"" optional:"" name:"id" help:"Which letters."`
	All bool     `help:"All of them."`
}

// each calls f for every letter named.
func (c *whichLetters) each(ctx context.Context, b *bus.Bus, done string, f func(context.Context, uint64) error) error {
	ids := c.IDs
	switch {
	case c.All && len(ids) > 0:
		return errors.New("give numbers or --all, not both")
	case c.All:
		letters, err := b.DeadLetters(ctx)
		if err != nil {
			return err
		}
		for _, l := range letters {
			ids = append(ids, l.ID)
		}
	case len(ids) == 0:
		return errors.New("which letters? give their numbers, or --all; 'gateway dlq list' lists them")
	}
	for _, id := range ids {
		if err := f(ctx, id); err != nil {
			return err
		}
		fmt.Printf("%s dead letter %d\n", done, id)
	}
	return nil
}

type dlqReplayCmd struct {
	logFlags     `embed:""`
	whichLetters `embed:""`
}

// Help is shown below the usage of dlq replay.
func (dlqReplayCmd) Help() string {
	return `The order stands on the log; a minter or a summariser of the cluster, or the gateway when it next runs on this
directory, carries it out. If that fails again, a new letter tells of it. A fold is not put before a newer one of its task
and kind that waits already: drop its letter instead.`
}

// Run replays.
func (c *dlqReplayCmd) Run(ctx contextArg) error {
	return c.with(ctx, func(ctx context.Context, b *bus.Bus) error {
		return c.each(ctx, b, "ordered a replay of", b.ReplayDead)
	})
}

type dlqDropCmd struct {
	logFlags     `embed:""`
	whichLetters `embed:""`
}

// Run drops.
func (c *dlqDropCmd) Run(ctx contextArg) error {
	return c.with(ctx, func(ctx context.Context, b *bus.Bus) error { return c.each(ctx, b, "dropped", b.DropDead) })
}
