package bus

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// BenchmarkAppend prints one durable append as a ratio to a bare synced publish of the same size, both taken in turns
// on the same server: the medians, so that a disk's pauses weigh on neither (DESIGN §8: at most 2).
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 20 << 10} {
		b.Run(strconv.Itoa(size>>10)+"KB", func(b *testing.B) {
			ctx := context.Background()
			log, err := Open(ctx, Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer log.Close()
			if _, err := log.bulkJS.CreateStream(ctx, jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare.*"}}); err != nil {
				b.Fatal(err)
			}
			payload := make([]byte, size)
			key := record.Key{Tenant: "acme", Task: "t"}
			var ours, bare []time.Duration
			var last uint64
			for i := 0; b.Loop(); i++ {
				copy(payload, strconv.Itoa(i))
				hash := engine.Sum(payload)
				at := time.Now()
				pos, err := log.Append(ctx, key, payload, hash, last)
				if err != nil {
					b.Fatal(err)
				}
				ours = append(ours, time.Since(at))
				last = pos.Seq
				at = time.Now()
				if _, err := log.writeJS.Publish(ctx, "bare.t", payload); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, time.Since(at))
			}
			b.ReportMetric(float64(median(ours))/float64(median(bare)), "append/publish")
			b.ReportMetric(float64(median(ours))/1e3, "µs/append")
			b.ReportMetric(float64(median(bare))/1e3, "µs/publish")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkTail prints the rate of a tail over 1 KB entries as a ratio to a bare consumer that takes the same bytes: the
// best of each, so that what else the machine does weighs on neither.
func BenchmarkTail(b *testing.B) {
	const entries = 20000
	ctx := context.Background()
	log, err := Open(ctx, Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	payload := make([]byte, 1<<10)
	stream := log.StreamOf("t", KindFinished)
	fill(b, log, subject(record.Key{Tenant: "acme", Task: "t"}, KindFinished), payload, entries)
	var ours, bare []time.Duration
	for b.Loop() {
		at := time.Now()
		done := errors.New("all there")
		if err := log.Tail(ctx, Pos{Stream: stream}, func(batch Batch) error {
			if batch.UpTo.Seq >= entries {
				return done
			}
			return nil
		}); !errors.Is(err, done) {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(at))

		at = time.Now()
		consumer, err := log.tailJS.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
		if err != nil {
			b.Fatal(err)
		}
		messages, err := consumer.Messages()
		if err != nil {
			b.Fatal(err)
		}
		for range entries {
			if _, err := messages.Next(); err != nil {
				b.Fatal(err)
			}
		}
		messages.Stop()
		bare = append(bare, time.Since(at))
	}
	b.ReportMetric(float64(slices.Min(bare))/float64(slices.Min(ours)), "tail/bare")
	b.ReportMetric(entries/slices.Min(ours).Seconds(), "entries/s")
}

// BenchmarkMint prints the rate of mints, event handed out to form durable, as a ratio to the rate at which as many
// bare publishers write entries of the form's size to as many synced streams.
func BenchmarkMint(b *testing.B) {
	const entries, tasks, workers = 960, 64, 16
	ctx := context.Background()
	log, err := Open(ctx, Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	for k := range log.streams.k {
		if _, err := log.bulkJS.CreateStream(ctx, jetstream.StreamConfig{Name: "BARE_" + strconv.Itoa(k), Subjects: []string{"bare." + strconv.Itoa(k)}}); err != nil {
			b.Fatal(err)
		}
	}
	event, form := make([]byte, 20<<10), make([]byte, 2<<10)
	var ours, bare []time.Duration
	for b.Loop() {
		for task := range tasks {
			fill(b, log, subject(record.Key{Tenant: "acme", Task: strconv.Itoa(task)}, KindFinished), event, entries/tasks)
		}
		at := time.Now()
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- log.Mint(run, MintConfig{Slots: workers}, func(ctx context.Context, m Msg) error {
				_, err := log.Form(ctx, m.Key, form, m.Pos.Stream+strconv.FormatUint(m.Pos.Seq, 10))
				return err
			})
		}()
		if err := log.WaitMinted(ctx); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(at))
		stop()
		if err := <-done; err != nil {
			b.Fatal(err)
		}

		at = time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range entries / workers {
					if _, err := log.writeJS.Publish(ctx, "bare."+strconv.Itoa(w%log.streams.k), form); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		bare = append(bare, time.Since(at))
	}
	b.ReportMetric(float64(slices.Min(bare))/float64(slices.Min(ours)), "mint/publish")
	b.ReportMetric(entries/slices.Min(ours).Seconds(), "mints/s")
}

// fill writes n entries without waiting for each.
func fill(b *testing.B, log *Bus, subject string, payload []byte, n int) {
	b.Helper()
	for range n {
		if _, err := log.bulkJS.PublishAsync(subject, payload, jetstream.WithStallWait(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	<-log.bulkJS.PublishAsyncComplete()
}
