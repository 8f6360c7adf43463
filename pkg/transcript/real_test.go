package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/internal/realdata"
)

// index is a row of INDEX.tsv, the hand-kept table beside the transcripts.
type index struct {
	path, format string
	steps, calls int
}

func readIndex(t *testing.T, dir string) []index {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Skipf("no INDEX.tsv beside the transcripts: %v", err)
	}
	var out []index
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 || len(f) < 9 {
			continue
		}
		steps, _ := strconv.Atoi(f[7])
		calls, _ := strconv.Atoi(f[8])
		out = append(out, index{path: f[0], format: f[4], steps: steps, calls: calls})
	}
	return out
}

// sources says how the table's names of formats are ours, and which are not claimed.
var sources = map[string]string{
	"claude-code-jsonl": "claude-code", "claude-trace-http-log": "claude-trace", "codex-rollout": "codex",
	"mini-swe-agent-traj-v1": "mini-swe-agent", "swe-agent-traj": "swe-agent", "tau-bench-results": "tau-bench",
	"openhands-v0-events": "openhands-events", "openhands-eval-output": "openhands-eval", "openhands-sdk-llm-log": "openhands-sdk",
	"pi-session-v1": "pi-v1", "pi-session-v3": "pi-v3", "opencode-export": "opencode", "codex-rollout-legacy": "codex-legacy",
}

var unclaimed = map[string]string{"kimi-wire": "kimi wire log", "inspect-eval-log-json": "inspect eval log"}

// TestIndex reads every file of the table and compares what it counts, where that means the same.
func TestIndex(t *testing.T) {
	dir := realdata.Dir(t)
	for _, row := range readIndex(t, dir) {
		t.Run(row.path, func(t *testing.T) {
			f, err := ReadFile(filepath.Join(dir, filepath.FromSlash(row.path)))
			if seems, ok := unclaimed[row.format]; ok {
				var u *UnclaimedError
				if !errors.As(err, &u) || u.Seems != seems {
					t.Fatalf("read of an unclaimed %s: %v", row.format, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := sources[row.format]; f.Source != want {
				t.Errorf("source %s, want %s", f.Source, want)
			}
			steps, calls := 0, 0
			for i := range f.Tasks {
				steps += f.Tasks[i].Steps()
				calls += countCalls(&f.Tasks[i])
			}
			r := f.Total()
			t.Logf("steps %d (index %d), calls %d (index %d), repairs %+v", steps, row.steps, calls, row.calls, r)
			if want, ok := expect[filepath.Base(row.path)]; ok {
				if diff := cmp.Diff(want, [2]int{steps, calls}); diff != "" {
					t.Errorf("steps and calls (-want +got):\n%s", diff)
				}
				return
			}
			if got := steps + r.MergedSteps + r.AbortedSteps; got != row.steps {
				t.Errorf("%d steps, of them %d merged and %d left out; the index has %d", got, r.MergedSteps, r.AbortedSteps, row.steps)
			}
			if f.Source == "openhands-sdk" {
				calls-- // the answer's, which the table does not count
			}
			if calls != row.calls {
				t.Errorf("%d calls, the index has %d", calls, row.calls)
			}
		})
	}
}

// expect holds steps and calls of files for which the table counts something else.
var expect = map[string][2]int{
	"test-traffic.jsonl":               {16, 12},    // the table counts every HTTP pair; 48 are side requests
	"claude-small.jsonl":               {5, 4},      // one record of each kind: three conversations that do not hang together
	"codex-small.jsonl":                {6, 8},      // the table leaves out one kind of call
	"gpt-4o-airline.dev.json":          {1698, 810}, // 120 of the 200 runs that the table counts
	"multi_swe_bench-output.dev.jsonl": {56, 56},    // two of the three instances that the table counts
	"resolver-output.jsonl":            {26, 24},    // no steps in the table; it takes two finishes for calls
	"large-session.jsonl":              {430, 373},  // 22 generations with 18 calls were aborted, one pair merged
	"ctf__crypto__BabyEncryption.traj": {15, 15},    // the history lacks an action of the trajectory
}

func countCalls(t *Task) (n int) {
	for _, m := range t.Messages {
		v := gjson.ParseBytes(m)
		if strings.HasSuffix(v.Get("type").String(), "_call") {
			n++
		}
		n += len(v.Get("tool_calls").Array())
		each(v.Get("content"), func(b gjson.Result) {
			if b.Get("type").Str == "tool_use" {
				n++
			}
		})
	}
	return n
}

// TestRealBodies checks the body of every boundary of every real file, and that a second reading gives the same bytes.
func TestRealBodies(t *testing.T) {
	dir := realdata.Dir(t)
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		t.Run(filepath.ToSlash(rel), func(t *testing.T) {
			f, err := ReadFile(p)
			if errors.Is(err, ErrUnclaimed) {
				if strings.HasPrefix(filepath.ToSlash(rel), "requests/") && strings.HasSuffix(rel, ".json") {
					t.Error(err)
				}
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			again, err := ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(outline(f), outline(again)); diff != "" {
				t.Fatalf("two readings differ (-first +second):\n%s", diff)
			}
			checkFile(t, f)
			if f.Source == "request" {
				checkOwnBytes(t, p, f)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkOwnBytes(t *testing.T, path string, f *File) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped struct{ Body json.RawMessage }
	if err := json.Unmarshal(data, &wrapped); err != nil {
		t.Fatal(err)
	}
	task := &f.Tasks[0]
	if got := task.Body(len(task.Messages)); !bytes.Equal(got, wrapped.Body) {
		t.Errorf("the whole body is not the imported one: %d bytes, want %d", len(got), len(wrapped.Body))
	}
}
