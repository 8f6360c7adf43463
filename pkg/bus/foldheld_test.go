package bus

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ullage/ullage/pkg/record"
)

// bench is a pool without a server: what it is told goes into said.
type bench struct {
	*foldPool
	t    *testing.T
	said []string
}

// newBench has one slot. A fold takes as many seconds as its payload has bytes.
func newBench(t *testing.T, cfg FoldConfig) *bench {
	w := &bench{t: t}
	b := &Bus{cfg: Config{AckWait: 30 * time.Second}, log: slog.New(slog.DiscardHandler)}
	w.foldPool = newFoldPool(b, cfg.withDefaults(), t.Context(), func(ctx context.Context, job FoldJob) ([]byte, error) {
		if job.Background {
			w.say("job " + job.Key)
		} else {
			w.say("fold " + job.Key + " for " + string(job.Payload[:1]))
		}
		select {
		case <-time.After(time.Duration(len(job.Payload)) * time.Second):
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return w
}

func (w *bench) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

func (w *bench) come(id, key string, room int, background bool, takes int) {
	w.t.Helper()
	x := &waiter{
		id:  id,
		job: FoldJob{Key: key, Payload: slices.Repeat([]byte(id[:1]), takes), Left: time.Hour, Task: record.Key{Tenant: "a", Task: "t"}, Room: room, Background: background},
		answer: func(_ []byte, err error) {
			said := id + " done"
			if err != nil {
				said = id + ": " + err.Error()
			}
			w.say(said)
		},
	}
	if background {
		x.late = func(began bool) {
			if began {
				w.say(id + " late")
			} else {
				w.say(id + " without a slot")
			}
		}
	}
	if refused := w.enter(x, true); refused != nil {
		w.say(id + ": " + refused.reason)
	}
	synctest.Wait()
}

func (w *bench) want(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.said, want) {
		w.t.Errorf("it went\n%q\nand not\n%q", w.said, want)
	}
}

// A job that lost its slot on the way waits behind every request, and begins when none waits.
func TestHeldJobBeginsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		w.come("r1", "k1", 0, false, 1)
		w.come("j", "kj", 0, true, 1)
		w.come("s2", "k2", 900, false, 1)
		time.Sleep(10 * time.Second)
		w.want("fold k1 for r", "r1 done", "fold k2 for s", "s2 done", "job kj", "j done")
	})
}

// One that gets none within AckWait is given back, for a worker that has one.
func TestHeldJobIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		w.come("r", "k", 0, false, 60)
		w.come("j", "kj", 0, true, 1)
		time.Sleep(2 * time.Minute)
		w.want("fold k for r", "j without a slot", "r done")
	})
}

// A job's time counts from when it began, and one that is too long is stopped.
func TestJobIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		w.come("r", "k", 0, false, 20)
		w.come("j", "kj", 0, true, 2*3600)
		time.Sleep(time.Hour + 10*time.Second)
		w.want("fold k for r", "r done", "job kj")
		time.Sleep(20 * time.Second)
		w.want("fold k for r", "r done", "job kj", "j late")
	})
}

// A request for a fold that a held job wants makes it as urgent as any; with the request gone it is a job again, and
// its own request is worked on, since what the caller referred to may be gone.
func TestRequestJoinsAHeldJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		w.come("r1", "k1", 0, false, 2)
		w.come("j1", "same", 0, true, 1)
		w.come("s2", "k2", 500, false, 1)
		w.come("u3", "same", 100, false, 1)
		time.Sleep(10 * time.Second)
		w.want("fold k1 for r", "r1 done", "fold same for u", "u3 done", "j1 done", "fold k2 for s", "s2 done")

		w.said = nil
		w.come("r4", "k4", 0, false, 2)
		w.come("j5", "both", 0, true, 1)
		w.come("u6", "both", 100, false, 1)
		w.come("s7", "k7", 500, false, 1)
		w.leave("u6")
		time.Sleep(10 * time.Second)
		w.want("fold k4 for r", "r4 done", "fold k7 for s", "s7 done", "job both", "j5 done")
	})
}

// A request that is sent away from a full room leaves the job behind that shared its fold.
func TestDisplacedRequestLeavesItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1, Waiting: 1})
		w.come("r", "k", 0, false, 2)
		w.come("s", "both", 500, false, 1)
		w.come("j", "both", 0, true, 1)
		w.come("u", "urgent", 100, false, 1)
		w.come("v", "less", 200, false, 1)
		time.Sleep(10 * time.Second)
		w.want("fold k for r", "s: busy", "v: busy", "r done", "fold urgent for u", "u done", "job both", "j done")
	})
}

// Closing sends away who waits, callers and jobs, and ends nothing that runs.
func TestClosedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		w.come("r", "k", 0, false, 2)
		w.come("s", "k2", 0, false, 1)
		w.come("j", "k3", 0, true, 1)
		w.close()
		w.come("late", "k4", 0, false, 1)
		time.Sleep(10 * time.Second)
		w.inHand.Wait()
		w.want("fold k for r", "s: shutting down", "j: shutting down", "late: shutting down", "r done")
	})
}

// A fold that its callers left to a job holds one of the slots that jobs may have.
func TestFoldLeftToAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 3, Background: 1})
		w.come("r", "same", 0, false, 5)
		w.come("j", "same", 0, true, 5)
		w.leave("r")
		w.come("i", "other", 0, true, 1)
		w.want("fold same for r")
		time.Sleep(10 * time.Second)
		w.want("fold same for r", "j done", "job other", "i done")
	})
}

// A fold that waited for its slot is told what its caller will still wait, and how urgent its most urgent caller is.
func TestTimeLeftAfterWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBench(t, FoldConfig{Slots: 1})
		var job FoldJob
		makes := w.handler
		w.handler = func(ctx context.Context, j FoldJob) ([]byte, error) { job = j; return makes(ctx, j) }
		w.come("r", "k", 0, false, 10)
		w.come("s", "same", 500, false, 1)
		w.come("u", "same", 300, false, 1)
		time.Sleep(time.Minute)
		w.want("fold k for r", "r done", "fold same for s", "s done", "u done")
		if job.Left != time.Hour-10*time.Second || job.Room != 300 {
			t.Errorf("the fold was told of %s and room %d", job.Left, job.Room)
		}
	})
}
