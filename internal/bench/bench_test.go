package bench

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkStep prints one stateless step on a history of a million tokens as a ratio to one validating JSON scan and one
// SHA-256 pass over the same bytes, taken in turns (DESIGN §8: at most 3).
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name    string
		reduced bool
	}{{"raw", false}, {"reduced", true}} {
		b.Run(c.name, func(b *testing.B) {
			t, err := NewTask(1_000_000, c.reduced)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(t.Body)))
			var bare, step []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := t.Bare(); err != nil {
					b.Fatal(err)
				}
				between := time.Now()
				if err := t.Step(); err != nil {
					b.Fatal(err)
				}
				bare, step = append(bare, between.Sub(start)), append(step, time.Since(between))
			}
			b.ReportMetric(typical(step)/typical(bare), "step/(scan+sha256)")
			b.ReportMetric(typical(step), "µs/step")
			b.ReportMetric(typical(bare), "µs/(scan+sha256)")
		})
	}
}

// BenchmarkGrow prints Extend by two parts, Decide and Projection as a ratio to a stateless step on the same history
// (DESIGN §8: at most 1/20 at a million tokens, and flat from 50 thousand on).
func BenchmarkGrow(b *testing.B) {
	for _, tokens := range []int{50_000, 200_000, 1_000_000} {
		b.Run(strconv.Itoa(tokens/1000)+"K", func(b *testing.B) {
			const chunk = 200
			t, err := NewTask(tokens, true)
			if err != nil {
				b.Fatal(err)
			}
			var grow, step []time.Duration
			var g *Grown
			for n := 0; b.Loop(); n++ {
				if n%chunk == 0 {
					b.StopTimer()
					start := time.Now()
					if err := t.Step(); err != nil {
						b.Fatal(err)
					}
					step = append(step, time.Since(start))
					if g, err = t.Grow(chunk); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				start := time.Now()
				if !g.Step() {
					b.Fatal("the history was folded while it grew")
				}
				grow = append(grow, time.Since(start))
			}
			b.ReportMetric(typical(grow)/typical(step), "grow/step")
			b.ReportMetric(typical(grow), "µs/grow")
		})
	}
}
