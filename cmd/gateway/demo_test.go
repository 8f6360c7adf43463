package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestDemo runs the command as it is run without a flag, on this repository.
func TestDemo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	c := &demoCmd{Window: 32_000, Fast: true, LogLevel: "error"}
	if err := c.run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"✓ all four tiers acted", "✓ a preflight folded", "✓ an output was recovered byte for byte", "✓ every view came out the same again", "What to try next"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demonstration does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colours in what is no terminal")
	}
}

func TestDemoStopped(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := (&demoCmd{Window: 32_000, LogLevel: "error"}).run(ctx, &out)
	if err == nil || !strings.Contains(err.Error(), "stopped before its end") {
		t.Errorf("got %v", err)
	}
}
