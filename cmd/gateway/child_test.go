package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A child process is this test binary, told by the environment to be the command.
const childEnv = "ULLAGE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	return cmd
}

// run runs the command to its end.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// served is a child that serves.
type served struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	done chan string // what it wrote on standard error, when it has ended
}

var listening = regexp.MustCompile(`listen=(\S+)`)

// serve starts `gateway serve` and waits until it answers.
func serve(t *testing.T, dir string, more ...string) *served {
	t.Helper()
	cmd := command(t, append([]string{"serve", "--data", dir, "--listen", "127.0.0.1:0", "--window", "32000"}, more...)...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, cmd: cmd, done: make(chan string, 1)}
	url := make(chan string, 1)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				url <- "http://" + m[1]
			}
		}
		s.done <- all.String()
	}()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case s.url = <-url:
	case said := <-s.done:
		t.Fatalf("serve ended: %s", said)
	case <-time.After(time.Minute):
		t.Fatal("serve did not begin to listen")
	}
	return s
}

// end sends a signal and returns the exit status and what the child said.
func (s *served) end(sig syscall.Signal) (int, string) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	said := <-s.done
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode(), said
}

// post makes a call; the error is one of the connection.
func (s *served) post(path string, body []byte) (int, []byte, error) {
	res, err := http.Post(s.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

func (s *served) get(path string) (int, []byte) {
	s.t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, b
}

// lineOf is one boundary as replay prints it.
type lineOf struct {
	Task      string `json:"task"`
	Step      int    `json:"step"`
	Boundary  string `json:"boundary"`
	Outcome   string `json:"outcome"`
	Tier      int    `json:"tier"`
	View      string `json:"view_sha256"`
	ViewTok   int    `json:"view_tokens"`
	WEff      int    `json:"w_eff"`
	TrigNow   int    `json:"trigger_now"`
	Predicted int    `json:"predicted"`
	Bytes     int    `json:"messages_bytes"`
	Kept      int    `json:"prefix_kept_bytes"`
	Misses    int    `json:"misses"`
	Fold      *struct{ Steps int }
	Moves     []struct {
		Address, Rung string
		Step, Tier    int
	}
}

// parse reads a replay's standard output. A last line that a kill cut off is left out.
func parse(t *testing.T, out string) (lines []lineOf, summary map[string]any) {
	t.Helper()
	for text := range strings.Lines(out) {
		var s struct {
			Summary map[string]any `json:"summary"`
		}
		var l lineOf
		switch {
		case json.Unmarshal([]byte(text), &s) != nil && !strings.HasSuffix(text, "\n"):
		case s.Summary != nil:
			summary = s.Summary
		default:
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatalf("line %.200s: %v", text, err)
			}
			lines = append(lines, l)
		}
	}
	return lines, summary
}

// digests are the views of a replay, one a line, for comparing.
func digests(lines []lineOf) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Task + " " + l.Boundary + " " + string(rune('0'+l.Tier)) + " " + l.View
	}
	return out
}

func write(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
