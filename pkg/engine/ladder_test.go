package engine_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ullage/ullage/pkg/engine/enginetest"
)

// The ladder's scripts: each opens with the law or the kind of failure that it shows. -rewrite updates them; only commit
// a change that you can explain.
func TestLadder(t *testing.T) {
	datadriven.Walk(t, "testdata/ladder", func(t *testing.T, path string) { enginetest.RunScript(t, path) })
}
