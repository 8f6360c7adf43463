package sdkloop_test

import (
	"testing"

	"github.com/ullage/ullage/internal/upstream"
)

// What a loop of eighty steps with a megabyte of history costs, client and provider together.
func BenchmarkLoop(b *testing.B) {
	for _, s := range surfaces() {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				up, err := upstream.Start(upstream.Config{Window: 1_000_000, ForgetBodies: true})
				if err != nil {
					b.Fatal(err)
				}
				o := s.o
				o.Stream = true
				r, err := s.run(b.Context(), up.URL(), o)
				up.Close()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.History), "history-bytes")
				b.ReportMetric(float64(r.Most), "prompt-tokens")
			}
		})
	}
}
