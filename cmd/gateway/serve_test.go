package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/sqlitestore"
	"github.com/ullage/ullage/pkg/wire"
)

func stepCall(t *testing.T, h *nodetest.Talk) []byte {
	return nodetest.Object(t, map[string]any{"format": string(h.Format), "body": json.RawMessage(h.Body())})
}

// TestKilledServe: a gateway that is killed with -9 amid traffic has lost nothing that it acknowledged, and its directory is
// sound and serves on.
func TestKilledServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	type sent struct {
		view string
		step int
	}
	talks := make([]*nodetest.Talk, 3)
	acked := make([]sent, len(talks))
	for k := range talks {
		talks[k] = nodetest.NewTalk(wire.Anthropic)
		talks[k].User(fmt.Sprintf("Work %d.", k))
	}
	for round := range 2 {
		s := serve(t, dir)
		var wg sync.WaitGroup
		for k, h := range talks {
			wg.Go(func() {
				for i := range 200 {
					status, b, err := s.post(fmt.Sprintf("/v1/tasks/kill-%d/step", k), stepCall(t, h))
					if err != nil {
						return // the kill
					}
					var v nodetest.Stepped
					if status != 200 || json.Unmarshal(b, &v) != nil {
						t.Errorf("task %d: %d %.300s", k, status, b)
						return
					}
					acked[k] = sent{v.View, v.Report.Step}
					h.Work(fmt.Sprintf("k%d_%d_%03d", k, round, i), 1, 60)
				}
			})
		}
		time.Sleep(700 * time.Millisecond)
		s.end(syscall.SIGKILL)
		wg.Wait()

		store, err := sqlitestore.Open(filepath.Join(dir, "node.db"))
		if err != nil {
			t.Fatal(err)
		}
		faults, err := store.Verify(t.Context())
		if err != nil || len(faults) > 0 {
			t.Errorf("verify after the kill: %v %v", faults, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	s := serve(t, dir)
	for k := range talks {
		if acked[k].step < 2 {
			t.Errorf("task %d came to step %d only", k, acked[k].step)
		}
		var d struct {
			Same bool   `json:"same_bytes"`
			View string `json:"view_sha256"`
		}
		status, b := s.get(fmt.Sprintf("/v1/tasks/kill-%d/steps/%d", k, acked[k].step))
		if err := json.Unmarshal(b, &d); err != nil || status != 200 || !d.Same || d.View != acked[k].view {
			t.Errorf("task %d: the last acknowledged step: %d %.200s", k, status, b)
		}
		if status, b, err := s.post(fmt.Sprintf("/v1/tasks/kill-%d/step", k), stepCall(t, talks[k])); err != nil || status != 200 {
			t.Errorf("task %d does not go on: %d %.200s %v", k, status, b, err)
		}
	}
	if code, said := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestDrain: asked to stop, a gateway answers what it has in hand, and takes nothing new.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	h := talk(wire.Chat, 30, 400)
	answered := make(chan string, 1)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := stepCall(t, h)
	// The head and half of the body before the signal, the rest after it: the request is in hand throughout.
	fmt.Fprintf(conn, "POST /v1/tasks/drain/step HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2])
	time.Sleep(100 * time.Millisecond)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(s.url, "http://"), time.Second); err == nil {
		t.Error("it still takes connections")
	}
	go func() {
		b := make([]byte, 12)
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, _ := conn.Read(b)
		answered <- string(b[:n])
	}()
	if _, err := conn.Write(body[len(body)/2:]); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got != "HTTP/1.1 200" {
		t.Errorf("the step in hand was answered %q", got)
	}
	said := <-s.done
	_ = s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(said, "stopped") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// refused starts a gateway that must not come up, and looks at its sentence.
func refused(t *testing.T, dir string, says []string, more ...string) {
	t.Helper()
	cmd := command(t, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0"}, more...)...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
		t.Errorf("it came up: %s", said.String())
		return
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit %d: %s", code, said.String())
	}
	for _, s := range says {
		if !strings.Contains(said.String(), s) {
			t.Errorf("the sentence lacks %q: %s", s, said.String())
		}
	}
	if strings.Contains(said.String(), "goroutine") {
		t.Errorf("it panicked: %s", said.String())
	}
}

// used makes a data directory with a task in it.
func used(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	n := nodetest.Start(t, dir)
	h := talk(wire.Anthropic, 6, 90)
	n.Step("used", h, h.Body(), nil)
	n.Settle("used")
	n.Stop()
	return dir
}

// TestStartFaults: what keeps a gateway from starting is said in a sentence, with a non-zero exit.
func TestStartFaults(t *testing.T) {
	t.Parallel()
	put := func(dir, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a newer directory", func(t *testing.T) {
		dir := used(t)
		put(dir, "log/version", "99\n")
		refused(t, dir, []string{"version 99", "newer"})
	})
	t.Run("a locked directory", func(t *testing.T) {
		dir := t.TempDir()
		n := nodetest.Start(t, dir)
		refused(t, dir, []string{"process", "uses it"})
		n.Stop()
	})
	t.Run("a taken port", func(t *testing.T) {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refused(t, t.TempDir(), []string{"another program has this port"}, "--listen", l.Addr().String())
	})
	t.Run("a database that is none", func(t *testing.T) {
		dir := used(t)
		put(dir, "node.db", strings.Repeat("this is no database ", 1000))
		refused(t, dir, []string{"node.db"})
	})
	t.Run("a directory that is a file", func(t *testing.T) {
		dir := t.TempDir()
		put(dir, "data", "x")
		refused(t, filepath.Join(dir, "data"), []string{"data"})
	})
	t.Run("a log that was removed", func(t *testing.T) {
		dir := used(t)
		if err := os.RemoveAll(filepath.Join(dir, "log", "nats")); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, []string{"re-seed"})
	})
	t.Run("contradictory knobs", func(t *testing.T) {
		refused(t, t.TempDir(), []string{"stop ratio"}, "--trigger-ratio", "0.4", "--stop-ratio", "0.6")
		refused(t, t.TempDir(), []string{"window"}, "--window=-1")
	})
	t.Run("a full disk", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Skipf("no small file system can be mounted here: %v", err)
		}
		defer syscall.Unmount(dir, syscall.MNT_DETACH)
		put(dir, "filler", strings.Repeat("x", 1<<20-16<<10))
		refused(t, filepath.Join(dir, "data"), []string{"space"})
	})
}

// TestRebuilt: a node whose SQLite file is deleted makes it again from the log, and gives the same views.
func TestRebuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := nodetest.Start(t, dir)
	h := nodetest.NewTalk(wire.Anthropic)
	h.User("Read on.")
	var views []nodetest.Stepped
	for i := range 10 {
		views = append(views, n.Step("rebuilt", h, h.Body(), nil))
		n.Settle("rebuilt")
		h.Work(fmt.Sprintf("b%02d", i), 1, 120)
	}
	n.Stop()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(filepath.Join(dir, "node.db"+suffix))
	}
	n = nodetest.Start(t, dir)
	// The first call of all, with the copy still empty.
	if again := n.Step("rebuilt", h, views[9].Body, nil); again.View == "" {
		t.Error("no view")
	}
	for _, v := range views {
		var d struct {
			Same bool   `json:"same_bytes"`
			View string `json:"view_sha256"`
		}
		n.Call("GET", fmt.Sprintf("/v1/tasks/rebuilt/steps/%d", v.Report.Step), nil).Into(t, 200, &d)
		if v.Report.Step < 10 && (!d.Same || d.View != v.View) {
			t.Errorf("step %d: %+v", v.Report.Step, d)
		}
	}
	if next := n.Step("rebuilt", h, h.Body(), nil); next.Report.Restored.Forms+next.Report.Restored.FoldSteps == 0 {
		t.Error("nothing of what was applied is restored")
	}
	if faults, err := n.Store.Verify(t.Context()); err != nil || len(faults) > 0 {
		t.Errorf("verify: %v %v", faults, err)
	}
}
