// Package realdata finds the optional directory of real transcripts that some tests read.
package realdata

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Env names the variable that says where the transcripts are.
const Env = "ULLAGE_TRANSCRIPTS"

// Dir returns the directory of real transcripts, or skips the test with a sentence when there is none. The
// directory is $ULLAGE_TRANSCRIPTS, by default ../shared/data beside the repository.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv(Env)
	if dir == "" {
		_, file, _, ok := runtime.Caller(0)
		if !ok {
			tb.Fatal("where this source file lies is not known")
		}
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("no transcripts at %s: set %s to a directory that holds them to run this test", dir, Env)
	}
	return dir
}
