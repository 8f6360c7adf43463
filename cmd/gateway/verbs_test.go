package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/internal/clustertest"
	"github.com/ullage/ullage/internal/node"
	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/compactor"
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/gateway"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// running is a node on a directory, with its parts running until stop.
func running(t *testing.T, dir string) (n *node.Node, stop func()) {
	t.Helper()
	n, err := node.Open(t.Context(), node.Config{
		Name: "test", Dir: dir, Gateway: true, Minter: true, Summarizer: true,
		Budget: clustertest.Budget(t, 32000), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	return n, func() {
		cancel()
		if err := errors.Join(<-ended, n.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// worked leaves a data directory behind in which a task took steps, with reductions and folds.
func worked(t *testing.T, task string) string {
	t.Helper()
	dir := t.TempDir()
	n, stop := running(t, dir)
	key := record.Key{Tenant: gateway.DefaultTenant, Task: task}
	for steps := 0; steps <= 24; steps += 2 {
		body, err := json.Marshal(clustertest.Body(steps, 80))
		if err != nil {
			t.Fatal(err)
		}
		b := engine.Step
		if steps == 0 {
			b = engine.Preflight
		}
		r, err := n.Compactor.Run(t.Context(), key, compactor.Request{Boundary: b, Format: wire.Anthropic, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		stream := n.Bus.StreamOf(task, bus.KindFrame)
		if err := n.Replica.Settle(t.Context(), bus.Pos{Stream: stream, Seq: r.Seq, Epoch: n.Bus.Epoch(stream)}); err != nil {
			t.Fatal(err)
		}
		if err := n.Replica.SettleForms(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	return dir
}

func TestVerbsOverADataDirectory(t *testing.T) {
	dir := worked(t, "fix-the-build")
	w := where{data: data{Data: dir}}
	said := func(f func(context.Context, *bytes.Buffer, tasks) error) string {
		t.Helper()
		var out bytes.Buffer
		if err := w.with(t.Context(), "test", func(ctx context.Context, k tasks) error { return f(ctx, &out, k) }); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		return out.String()
	}

	list := said(func(ctx context.Context, out *bytes.Buffer, k tasks) error { return listTasks(ctx, out, k, false) })
	if !regexp.MustCompile(`(?m)^fix-the-build +1 +12 +[1-9]`).MatchString(list) {
		t.Errorf("the list is:\n%s\nwant the task with 1 turn, 12 steps and passes", list)
	}

	view := said(func(ctx context.Context, out *bytes.Buffer, k tasks) error {
		return (&viewCmd{Task: "fix-the-build"}).show(ctx, out, k)
	})
	for _, want := range []string{
		"task fix-the-build, step 25 of turn 1", "near window", "made again from the record: the same bytes",
		`tool:toolu_\d+ +Read +[\d,]+ +minted +was [\d,]+; at step \d+ by ①`, `task context +[\d,]+ +head +the digest of steps 1 to \d+`,
	} {
		if !regexp.MustCompile(want).MatchString(view) {
			t.Errorf("the view lacks %q:\n%s", want, view)
		}
	}

	// Each step's view, told by --body, is the one that the report names; and --json agrees with it.
	body := said(func(ctx context.Context, out *bytes.Buffer, k tasks) error {
		return (&viewCmd{Task: "fix-the-build", Step: 13, Body: true}).show(ctx, out, k)
	})
	var v struct {
		View  engine.Digest `json:"view_sha256"`
		Same  bool          `json:"same_bytes"`
		Parts []viewPart    `json:"parts"`
	}
	whole := said(func(ctx context.Context, out *bytes.Buffer, k tasks) error {
		return (&viewCmd{Task: "fix-the-build", Step: 13, JSON: true}).show(ctx, out, k)
	})
	if err := json.Unmarshal([]byte(whole), &v); err != nil {
		t.Fatal(err)
	}
	if v.View != engine.Sum([]byte(body)) || !v.Same || len(v.Parts) == 0 {
		t.Errorf("--json says view %s, same bytes %v, %d parts; --body has digest %s", v.View, v.Same, len(v.Parts), engine.Sum([]byte(body)))
	}

	var out bytes.Buffer
	if err := verify(t.Context(), &out, dir); err != nil || !strings.Contains(out.String(), "no fault") {
		t.Errorf("verify: %v, %s", err, out.String())
	}

	said(func(ctx context.Context, _ *bytes.Buffer, k tasks) error { return k.Purge(ctx, "fix-the-build") })
	list = said(func(ctx context.Context, out *bytes.Buffer, k tasks) error { return listTasks(ctx, out, k, false) })
	if !strings.Contains(list, "no tasks") {
		t.Errorf("after the purge the list is:\n%s", list)
	}
}

// A running gateway answers the same over HTTP as its directory does when it has stopped.
func TestVerbsOverHTTP(t *testing.T) {
	dir := worked(t, "t1")
	var closed, open bytes.Buffer
	show := func(out *bytes.Buffer) func(context.Context, tasks) error {
		return func(ctx context.Context, k tasks) error {
			return errors.Join(listTasks(ctx, out, k, true), (&viewCmd{Task: "t1"}).show(ctx, out, k))
		}
	}
	if err := (&where{data: data{Data: dir}}).with(t.Context(), "test", show(&closed)); err != nil {
		t.Fatal(err)
	}
	n, stop := running(t, dir)
	defer stop()
	api := httptest.NewServer(n.Server().Handler())
	defer api.Close()
	if err := (&where{URL: api.URL}).with(t.Context(), "test", show(&open)); err != nil {
		t.Fatal(err)
	}
	if closed.String() != open.String() {
		t.Errorf("the directory says:\n%s\nand the gateway:\n%s", closed.String(), open.String())
	}

	// The directory is held: the sentence says how to ask its holder.
	err := (&where{data: data{Data: dir}}).with(t.Context(), "view", show(&open))
	if err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("a held directory gives %v, want a sentence that names --url", err)
	}
	if err := verify(t.Context(), &open, dir); err == nil || !strings.Contains(err.Error(), "locked by another process") {
		t.Errorf("verify of a held directory gives %v", err)
	}
	err = (&where{URL: api.URL}).with(t.Context(), "view", func(ctx context.Context, k tasks) error {
		return (&viewCmd{Task: "nobody"}).show(ctx, &open, k)
	})
	if err == nil || !strings.Contains(err.Error(), "no such task") {
		t.Errorf("an unknown task gives %v", err)
	}
}

func TestVerifyFindsAFlippedByte(t *testing.T) {
	dir := worked(t, "t1")
	path := filepath.Join(dir, "node.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// In the middle of the file lie contents, not the schema.
	for i := len(b) / 2; i < len(b)/2+4096; i++ {
		b[i] ^= 0x5a
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = verify(t.Context(), &out, dir)
	if e, ok := errors.AsType[*cli.ExitError](err); !ok || e.Code != 2 || out.Len() == 0 {
		t.Errorf("verify of a damaged copy gives %v and says %q, want status 2 and the faults", err, out.String())
	}
}

func TestDeadLetterVerbs(t *testing.T) {
	dir := t.TempDir()
	n, err := node.Open(t.Context(), node.Config{Name: "test", Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	minting := make(chan error, 1)
	go func() {
		minting <- n.Bus.Mint(ctx, bus.MintConfig{}, func(context.Context, bus.Msg) error { return bus.Permanent(errors.New("this call has no shape")) })
	}()
	for i := range 3 {
		if _, err := n.Bus.Event(t.Context(), record.Key{Tenant: "default", Task: "t1"}, []byte{byte(i)}, ""); err != nil {
			t.Fatal(err)
		}
	}
	clustertest.Until(t, "three dead letters", func() bool { l, err := n.Bus.DeadLetters(t.Context()); return err == nil && len(l) == 3 })
	cancel()
	if err := errors.Join(<-minting, n.Close()); err != nil {
		t.Fatal(err)
	}

	flags := logFlags{data: data{Data: dir}}
	var out bytes.Buffer
	left := func() []bus.DeadLetter {
		t.Helper()
		var letters []bus.DeadLetter
		if err := flags.with(t.Context(), func(ctx context.Context, b *bus.Bus) (err error) {
			letters, err = b.DeadLetters(ctx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return letters
	}
	letters := left()
	if err := errors.Join(printLetters(&out, letters, false), printLetters(&out, letters, true), showLetter(&out, letters[0])); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"permanent", "this call has no shape", `"id":1`, "because  this call", `"work":"mint"`, "default/t1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("what is printed lacks %q:\n%s", want, out.String())
		}
	}
	if err := (&dlqDropCmd{logFlags: flags, whichLetters: whichLetters{IDs: []uint64{letters[0].ID}}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := (&dlqReplayCmd{logFlags: flags, whichLetters: whichLetters{All: true}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := left(); len(l) != 0 {
		t.Errorf("%d letters are left after a drop and a replay of the others", len(l))
	}
	if err := (&dlqDropCmd{logFlags: flags, whichLetters: whichLetters{IDs: []uint64{99}}}).Run(t.Context()); err == nil {
		t.Error("a letter that is not there was dropped")
	}
	if err := (&dlqDropCmd{logFlags: flags}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "--all") {
		t.Errorf("a drop of nothing gives %v", err)
	}
}

// A fold that was given up is shown with its task, its kind and its error; a replay puts it back on the queue.
func TestDeadFoldVerbs(t *testing.T) {
	dir := t.TempDir()
	open := func() *node.Node {
		t.Helper()
		n, err := node.Open(t.Context(), node.Config{Name: "test", Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := open()
	ctx, cancel := context.WithCancel(t.Context())
	serving := make(chan error, 1)
	go func() {
		serving <- n.Bus.ServeFolds(ctx, bus.FoldConfig{}, func(context.Context, bus.FoldJob) ([]byte, error) {
			return nil, bus.Permanent(errors.New("the span is not what it was"))
		})
	}()
	task := record.Key{Tenant: "default", Task: "t1"}
	if err := n.Bus.QueueFold(t.Context(), bus.QueuedFold{Task: task, Kind: "drift", FoldRequest: bus.FoldRequest{Key: "k1", Payload: []byte(`{"cap":2500}`)}}); err != nil {
		t.Fatal(err)
	}
	var letters []bus.DeadLetter
	clustertest.Until(t, "a dead letter", func() (ok bool) {
		var err error
		letters, err = n.Bus.DeadLetters(t.Context())
		return err == nil && len(letters) == 1
	})
	cancel()
	if err := errors.Join(<-serving, n.Close()); err != nil {
		t.Fatal(err)
	}
	var list, lines, shown bytes.Buffer
	if err := errors.Join(printLetters(&list, letters, false), printLetters(&lines, letters, true), showLetter(&shown, letters[0])); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, text string
		has        []string
	}{
		{"list", list.String(), []string{"permanent", "fold drift", "default/t1", "the span is not what it was"}},
		{"list --json", lines.String(), []string{`"work":"fold"`, `"task":"t1"`, `"fold":{"kind":"drift","key":"k1","bytes":12}`}},
		{"show", shown.String(), []string{"work     fold drift", "task     default/t1", "key      k1", "request  12 bytes\n{\"cap\":2500}\n"}},
	} {
		for _, want := range c.has {
			if !strings.Contains(c.text, want) {
				t.Errorf("%s lacks %q:\n%s", c.what, want, c.text)
			}
		}
	}
	if err := (&dlqReplayCmd{logFlags: logFlags{data: data{Data: dir}}, whichLetters: whichLetters{All: true}}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = open()
	lag, err := n.Bus.FoldLag(t.Context())
	if err != nil || lag != (bus.Lag{Waiting: 1}) {
		t.Errorf("after the replay: %+v, %v", lag, err)
	}
	if letters, err := n.Bus.DeadLetters(t.Context()); err != nil || len(letters) != 0 {
		t.Errorf("left: %+v, %v", letters, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPurgeAsks(t *testing.T) {
	for answer, erased := range map[string]bool{"t1\n": true, "t1": true, "yes\n": false, "\n": false, "": false} {
		if err := confirm(strings.NewReader(answer), &bytes.Buffer{}, "t1", 3); (err == nil) != erased {
			t.Errorf("answer %q gives %v", answer, err)
		}
	}
}

func TestVerbsOfNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	err := (&where{data: data{Data: dir}}).with(t.Context(), "tasks", func(context.Context, tasks) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no log of Ullage's") {
		t.Errorf("a directory that is not there gives %v", err)
	}
	if err := verify(t.Context(), &bytes.Buffer{}, dir); err == nil || !strings.Contains(err.Error(), "no node.db") {
		t.Errorf("verify gives %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a verb that only looks made the directory")
	}
}
