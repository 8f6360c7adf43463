package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// benchLog makes the encoded entries of many tasks' frames, interleaved: each frame a model's message and a tool
// result of the size, with a step's report, every fourth preceded by its event.
func benchLog(b *testing.B, tasks, each, size int) ([][]byte, []record.Key) {
	b.Helper()
	var out [][]byte
	var keys []record.Key
	prev := make([]engine.Digest, tasks)
	source := bytes.Repeat([]byte("func (s *Store) Path(ctx context.Context, key record.Key) ([]record.Row, error) {\n"), size/80+1)
	for i := range each {
		for n := range tasks {
			key := record.Key{Tenant: "bench", Task: fmt.Sprint("task", n)}
			var result strings.Builder
			fmt.Fprintf(&result, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d-%d","content":"`, n, i)
			for off := 0; result.Len() < size; off += 80 {
				d := engine.Sum([]byte{byte(n), byte(i), byte(off), byte(off >> 8)})
				fmt.Fprintf(&result, "%x %s", d[:12], source[off:off+56])
			}
			result.WriteString(`"}]}`)
			call := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d-%d","name":"Read","input":{"file_path":"/src/%d.go"}}]}`, n, i, i)
			f := &record.Frame{
				Prev: prev[n], N0: 2 * i, Keep: 2 * i, Format: "anthropic", At: int64(i),
				Items: []record.Item{{Raw: []byte(call)}, {Raw: []byte(result.String())}}, Anchor: &engine.Anchor{Real: 1000 * i, Model: "m"},
				Step:    &record.Step{Report: engine.Report{Step: i, Outcome: engine.Under, Window: 200000}, Budget: engine.Budget{Window: 200000}},
				Session: fmt.Sprint("session", n),
			}
			random := func(s string) record.Mark {
				return record.MarkCall(engine.CallID(fmt.Sprintf("toolu_%s%d-%d", s, n, i)))
			}
			if f.Border, f.Marks = random("border"), []record.Mark{random("call")}; i%4 == 3 {
				f.Marks = append(f.Marks, random("on the way"))
			}
			enc, err := record.Seal(f)
			if err != nil {
				b.Fatal(err)
			}
			prev[n] = enc.Hash
			out, keys = append(out, enc.Bytes()), append(keys, key)
		}
	}
	return out, keys
}

const benchBatch = 256

// bare commits the encoded bytes in the same batches, and nothing else: the limit.
func bare(b *testing.B, path string, log [][]byte) time.Duration {
	db, err := sql.Open("sqlite3", dsn(path, "_journal_mode=WAL&_synchronous=NORMAL&_cache_size=-65536"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	exec := func(q string, args ...any) {
		if _, err := conn.ExecContext(ctx, q, args...); err != nil {
			b.Fatal(err)
		}
	}
	exec("PRAGMA wal_autocheckpoint = 4000")
	exec("CREATE TABLE entry(seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")
	exec("CREATE TABLE cursor(applied INTEGER NOT NULL) STRICT")
	exec("INSERT INTO cursor VALUES (0)")
	ins, err := conn.PrepareContext(ctx, "INSERT INTO entry VALUES (?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	defer ins.Close()
	start := time.Now()
	for at := 0; at < len(log); at += benchBatch {
		exec("BEGIN IMMEDIATE")
		end := min(at+benchBatch, len(log))
		for i := at; i < end; i++ {
			if _, err := ins.Exec(i+1, log[i]); err != nil {
				b.Fatal(err)
			}
		}
		exec("UPDATE cursor SET applied = ?", end)
		exec("COMMIT")
	}
	return time.Since(start)
}

// tailed decodes and tails the same bytes in the same batches.
func tailed(b *testing.B, path string, log [][]byte, keys []record.Key) time.Duration {
	s, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	start := time.Now()
	for at := 0; at < len(log); at += benchBatch {
		end := min(at+benchBatch, len(log))
		entries := make([]store.Entry, 0, benchBatch)
		for i := at; i < end; i++ {
			e, err := store.DecodeEntry(keys[i], "REC_0", uint64(i+1), log[i])
			if err != nil {
				b.Fatal(err)
			}
			entries = append(entries, e)
		}
		if err := s.Tail(ctx, "REC_0", "e", uint64(end), entries); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start)
}

// cpu is the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTail prints the rate of a rebuild and its ratio to bare commits of the same bytes in the same batches
// (DESIGN §8, "tailing the log into SQLite"). Both run in turns, so that the disk is the same for both. The ratio of
// processor times, which a busy machine disturbs less, stands beside it.
func BenchmarkTail(b *testing.B) {
	for _, size := range []int{1 << 10, 4 << 10, 20 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			log, keys := benchLog(b, 64, (16<<20)/(64*size), size)
			total := 0
			for _, e := range log {
				total += len(e)
			}
			var limit, ours, limitCPU, oursCPU time.Duration
			n := 0
			for b.Loop() {
				dir := b.TempDir()
				at := cpu(b)
				limit += bare(b, filepath.Join(dir, "bare.db"), log)
				limitCPU, at = limitCPU+cpu(b)-at, cpu(b)
				ours += tailed(b, filepath.Join(dir, "tail.db"), log, keys)
				oursCPU += cpu(b) - at
				n++
			}
			b.ReportMetric(float64(n*len(log))/ours.Seconds(), "entries/s")
			b.ReportMetric(float64(n*total)/1e6/ours.Seconds(), "MB/s")
			b.ReportMetric(limit.Seconds()/ours.Seconds(), "of-bare")
			b.ReportMetric(limitCPU.Seconds()/oursCPU.Seconds(), "of-bare-cpu")
			b.ReportMetric(0, "ns/op")
		})
	}
}
