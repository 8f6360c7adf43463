package bus

import (
	"context"
	"slices"
	"strconv"
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
