package tee_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that reads along runs by itself.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
