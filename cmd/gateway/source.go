package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// where says whom a verb asks about tasks: a data directory, or the gateway that holds one.
type where struct {
	data `embed:""`
	URL  string `name:"url" env:"ULLAGE_URL" placeholder:"URL" help:"Ask the gateway that serves there (http://127.0.0.1:8420) instead of opening the data directory."`
}

// tasks is what the verbs ask.
type tasks interface {
	Names(ctx context.Context) ([]string, error)
	Steps(ctx context.Context, task string) ([]compactor.Line, error)
	View(ctx context.Context, task string, step int, b engine.Boundary) (*seen, error)
	Purge(ctx context.Context, task string) error
}

// seen is one boundary's view, made again.
type seen struct {
	Report compactor.Line  `json:"report"`
	Same   bool            `json:"same_bytes"`
	View   engine.Digest   `json:"view_sha256"`
	Body   json.RawMessage `json:"body"`
	Format wire.Format     `json:"-"`
}

// with calls f with what the flags say to ask.
func (w *where) with(ctx context.Context, verb string, f func(context.Context, tasks) error) error {
	if w.URL != "" {
		return wrap(verb, f(ctx, &remote{strings.TrimRight(w.URL, "/")}))
	}
	return withNode(ctx, verb, w.Data, func(ctx context.Context, n *node.Node) error { return f(ctx, &local{n}) })
}

func wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// withNode opens a data directory, brings its store to the end of its log, calls f, and closes it again.
func withNode(ctx context.Context, verb, dir string, f func(context.Context, *node.Node) error) error {
	if _, err := os.Stat(filepath.Join(dir, "log")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no log of Ullage's in %s; name the data directory of a gateway with --data, or a running one with --url", verb, dir)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.Open(ctx, node.Config{Name: verb, Dir: dir, Gateway: true, Log: log})
	if err != nil {
		if _, held := errors.AsType[*bus.InUseError](err); held {
			return fmt.Errorf("%s: %w; a gateway that holds it can be asked with --url http://127.0.0.1:8420", verb, err)
		}
		return fmt.Errorf("%s: %w", verb, err)
	}
	parts, stop := context.WithCancel(ctx)
	defer stop()
	g, parts := errgroup.WithContext(parts)
	g.Go(func() error { return n.Run(parts) })
	g.Go(func() error {
		defer stop()
		if err := caughtUp(parts, n); err != nil {
			return err
		}
		return f(parts, n)
	})
	return wrap(verb, errors.Join(g.Wait(), n.Close()))
}

// caughtUp returns once the store holds all of the log.
func caughtUp(ctx context.Context, n *node.Node) error {
	for _, stream := range n.Bus.Streams() {
		head, err := n.Bus.Head(ctx, stream)
		if err != nil {
			return err
		}
		if err := n.Replica.Wait(ctx, stream, head.Seq); err != nil {
			return err
		}
	}
	return nil
}

// local asks an open data directory.
type local struct{ n *node.Node }

func (l *local) key(task string) (record.Key, error) {
	if err := bus.ValidToken("task", task); err != nil {
		return record.Key{}, err
	}
	return record.Key{Tenant: gateway.DefaultTenant, Task: task}, nil
}

func (l *local) Names(ctx context.Context) ([]string, error) {
	keys, err := l.n.Store.Tasks(ctx, gateway.DefaultTenant)
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Task
	}
	return names, err
}

func (l *local) Steps(ctx context.Context, task string) ([]compactor.Line, error) {
	key, err := l.key(task)
	if err != nil {
		return nil, err
	}
	steps, err := l.n.Compactor.Steps(ctx, key)
	lines := make([]compactor.Line, len(steps))
	for i := range steps {
		lines[i] = compactor.LineOf(key, l.n.Replica.Fence(key, steps[i].Seq), &steps[i].Step)
	}
	return lines, err
}

func (l *local) View(ctx context.Context, task string, step int, b engine.Boundary) (*seen, error) {
	key, err := l.key(task)
	if err != nil {
		return nil, err
	}
	d, err := l.n.Compactor.At(ctx, key, step, b)
	if err != nil {
		return nil, err
	}
	head, err := l.n.Store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	return &seen{Report: compactor.LineOf(key, d.Fence, &d.Step), Same: d.Same, View: engine.Sum(d.Body), Body: d.Body, Format: wire.Format(head.Format)}, nil
}

func (l *local) Purge(ctx context.Context, task string) error {
	key, err := l.key(task)
	if err != nil {
		return err
	}
	if _, err := l.n.Store.Head(ctx, key); err != nil {
		return err
	}
	return l.n.Replica.Erase(context.WithoutCancel(ctx), key, time.Now().UnixMilli())
}

// remote asks a running gateway.
type remote struct{ base string }

func (r *remote) call(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", r.base, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the gateway at %s: %w; is it running there?", r.base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", r.base, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var said struct {
			Error struct{ Message string }
		}
		if json.Unmarshal(body, &said) == nil && said.Error.Message != "" {
			return errors.New(said.Error.Message)
		}
		return fmt.Errorf("%s answered %s to %s %s; is that a gateway of Ullage's?", r.base, resp.Status, method, path)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(into); err != nil {
		return fmt.Errorf("the answer of %s to %s is not what a gateway says: %w", r.base, path, err)
	}
	return nil
}

func (r *remote) Names(ctx context.Context) ([]string, error) {
	var said struct{ Tasks []string }
	err := r.call(ctx, http.MethodGet, "/v1/tasks", &said)
	return said.Tasks, err
}

func (r *remote) Steps(ctx context.Context, task string) ([]compactor.Line, error) {
	var said struct{ Steps []compactor.Line }
	err := r.call(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(task)+"/steps", &said)
	return said.Steps, err
}

func (r *remote) View(ctx context.Context, task string, step int, b engine.Boundary) (*seen, error) {
	var v seen
	path := "/v1/tasks/" + url.PathEscape(task)
	if err := r.call(ctx, http.MethodGet, path+"/steps/"+strconv.Itoa(step)+"?boundary="+b.String(), &v); err != nil {
		return nil, err
	}
	var record struct{ Format wire.Format }
	err := r.call(ctx, http.MethodGet, path+"/messages", &record)
	v.Format = record.Format
	return &v, err
}

func (r *remote) Purge(ctx context.Context, task string) error {
	return r.call(ctx, http.MethodDelete, "/v1/tasks/"+url.PathEscape(task), nil)
}
