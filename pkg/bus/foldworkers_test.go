package bus_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/record"
)

func rawJS(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// takeUnanswered takes n deliveries from the queue of folds and answers for none, as workers do that die.
func takeUnanswered(t *testing.T, s *server.Server, n int) {
	t.Helper()
	consumer, err := rawJS(t, s).Consumer(t.Context(), "FOLD_Q", "fold")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
			t.Fatalf("delivery %d: %v", i, err)
		}
	}
}

// askInVain asks for a delivery that does not come.
func askInVain(t *testing.T, s *server.Server) {
	t.Helper()
	consumer, err := rawJS(t, s).Consumer(t.Context(), "FOLD_Q", "fold")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := consumer.Next(jetstream.FetchMaxWait(time.Second)); err == nil {
		t.Fatalf("a delivery of %s more", m.Subject())
	}
}

func streamMessages(t *testing.T, s *server.Server, stream string) uint64 {
	t.Helper()
	st, err := rawJS(t, s).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Msgs
}

// serveFoldsIn is the second process: it takes what comes, says so, and never ends any of it.
func serveFoldsIn(url string) {
	b, err := bus.Open(context.Background(), bus.Config{URL: url, SyncVouched: true})
	if err == nil {
		err = b.ServeFolds(context.Background(), bus.FoldConfig{Slots: 6, Background: 3}, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
			fmt.Println("holds", job.Key)
			select {}
		})
	}
	fmt.Println(err)
	os.Exit(1)
}

// A worker killed with three folds that are waited for and three jobs in hand: the callers are answered by another
// worker within their deadline, and the jobs are done once their time has passed.
func TestKilledWorkerLosesNoFold(t *testing.T) {
	s := listeningServer(t, true)
	caller := openURL(t, s, func(c *bus.Config) { c.AckWait = 500 * time.Millisecond })
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "BUS_TEST_FOLD_AT="+s.ClientURL())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(time.Minute, func() { child.Process.Kill() })
	defer guard.Stop()
	until(t, "the other process", func() bool { return caller.Summarizers(t.Context()) == nil })

	answers := make(chan error, 3)
	for i := range 3 {
		mustQueue(t, caller, record.Key{Tenant: "acme", Task: fmt.Sprint("t", i)}, "ahead", fmt.Sprint("job", i))
		go func() {
			got, err := caller.RequestFold(context.Background(), bus.FoldRequest{Key: fmt.Sprint("fold", i)},
				bus.FoldOptions{Deadline: 20 * time.Second, Hedge: 2 * time.Second})
			if err == nil && string(got) != fmt.Sprintf("fold%d: ", i) {
				err = fmt.Errorf("answered %q", got)
			}
			answers <- err
		}()
	}
	lines := bufio.NewScanner(out)
	var held []string
	for len(held) < 6 && lines.Scan() {
		held = append(held, lines.Text())
	}
	if slices.Sort(held); !slices.Equal(held, []string{"holds fold0", "holds fold1", "holds fold2", "holds job0", "holds job1", "holds job2"}) {
		t.Fatalf("the other process says %q", held)
	}
	wantLag(t, caller, bus.Lag{InHand: 3})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()

	var got seen
	serveFolds(t, openURL(t, s), 6, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		got.add(job)
		return echo(ctx, job)
	})
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	untilNoJobs(t, caller)
	keys := got.keys()
	slices.Sort(keys)
	if want := []string{"fold0", "fold1", "fold2", "job0", "job1", "job2"}; !slices.Equal(keys, want) {
		t.Errorf("another worker did %q, want each of %q once", keys, want)
	}
}

// A worker that is told to stop finishes the job in hand, or gives it back at the end of its drain time; what waited
// for its slots goes to another worker at once.
func TestWorkerStopsAndAnotherGoesOn(t *testing.T) {
	s := listeningServer(t, true)
	leaving := openURL(t, s, func(c *bus.Config) { c.DrainTimeout = 300 * time.Millisecond })
	begun, release := make(chan string, 9), make(chan struct{})
	var finished atomic.Int64
	stop := serveFoldsAs(t, leaving, bus.FoldConfig{Slots: 2, Background: 2}, func(ctx context.Context, job bus.FoldJob) ([]byte, error) {
		begun <- job.Key
		if job.Kind == "drift" { // does not end in time
			<-ctx.Done()
			return nil, ctx.Err()
		}
		<-release
		finished.Add(1)
		return nil, ctx.Err()
	})
	mustQueue(t, leaving, acme, "drift", "long")
	mustQueue(t, leaving, acme, "ahead", "short")
	<-begun
	<-begun
	caller := openURL(t, s)
	answer := make(chan error, 1)
	go func() {
		_, err := caller.RequestFold(context.Background(), bus.FoldRequest{Key: "waits"}, bus.FoldOptions{Deadline: 20 * time.Second})
		answer <- err
	}()
	until(t, "a request that waits", func() bool { return leaving.Stats().FoldsWaited == 1 })
	var got seen
	serveFolds(t, openURL(t, s), 2, func(_ context.Context, job bus.FoldJob) ([]byte, error) {
		got.add(job)
		return nil, nil
	})
	mustQueue(t, leaving, record.Key{Tenant: "acme", Task: "t2"}, "ahead", "new")
	until(t, "the other worker", func() bool { return len(got.keys()) == 1 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	if err := <-answer; err != nil {
		t.Errorf("the request that waited: %v", err)
	}
	close(release)
	<-stopped
	untilNoJobs(t, caller)
	keys := got.keys()
	slices.Sort(keys)
	if want := []string{"long", "new", "waits"}; !slices.Equal(keys, want) || finished.Load() != 1 {
		t.Errorf("the other worker did %q, want %q; the one that stopped finished %d of 1", keys, want, finished.Load())
	}
}

// A log of the version before queued folds gets their stream, and its dead letters hear of them; nothing else changes.
func TestOpenAddsTheQueueToAnOlderLog(t *testing.T) {
	s := listeningServer(t, true)
	openURL(t, s).Close()
	js := rawJS(t, s)
	if err := js.DeleteStream(t.Context(), "FOLD_Q"); err != nil {
		t.Fatal(err)
	}
	dead, err := js.Stream(t.Context(), "DLQ")
	if err != nil {
		t.Fatal(err)
	}
	config := dead.CachedInfo().Config
	config.Subjects = []string{"dlq.>", "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.mint"}
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	b := openURL(t, s)
	mustQueue(t, b, acme, "ahead", "k")
	if dead, err = js.Stream(t.Context(), "DLQ"); err != nil || len(dead.CachedInfo().Config.Subjects) != 3 {
		t.Errorf("the dead letters listen on %v, %v", dead.CachedInfo().Config.Subjects, err)
	}
}

// A queue that could lose jobs, or do them twice, is refused; so are dead letters that listen elsewhere.
func TestOpenRefusesAnUnsafeQueue(t *testing.T) {
	for _, c := range []struct {
		stream, says string
		spoil        func(*jetstream.StreamConfig)
	}{
		{"FOLD_Q", "discards", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"FOLD_Q", "newest", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 }},
		{"FOLD_Q", "newest", func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true }},
		{"FOLD_Q", "retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }},
		{"DLQ", "listens", func(c *jetstream.StreamConfig) { c.Subjects = []string{"dlq.>", "elsewhere.>"} }},
	} {
		t.Run(c.says, func(t *testing.T) {
			s := listeningServer(t, true)
			openURL(t, s).Close()
			js := rawJS(t, s)
			stream, err := js.Stream(t.Context(), c.stream)
			if err != nil {
				t.Fatal(err)
			}
			config := stream.CachedInfo().Config
			c.spoil(&config)
			if err := js.DeleteStream(t.Context(), c.stream); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			b, err := bus.Open(t.Context(), bus.Config{URL: s.ClientURL(), SyncVouched: true})
			if err == nil {
				b.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.stream) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
		})
	}
}
