package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/engine"
)

// TestBudgetOverServers: a call's knobs are laid over the server's, also back to nothing.
func TestBudgetOverServers(t *testing.T) {
	server := engine.Budget{Window: 200000, MinRoomPermille: 500, TightSpecified: true, JointLimit: true, RunwaySteps: -1, Precompact: 500}
	b := budget{server}
	err := json.Unmarshal([]byte(`{"WINDOW":64000,"COMPACTION_MIN_ROOM_RATIO":0,"compaction_tight":"raised","joint_limit":false,"runway_steps":4}`), &b)
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Budget{Window: 64000, RunwaySteps: 4, Precompact: 500}
	if d := cmp.Diff(want, b.Budget); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestBudgetKnobTwice(t *testing.T) {
	for _, in := range []string{
		`{"window":64000,"context_window":32000}`, `{"trigger_ratio":0.6,"COMPACTION_TRIGGER_RATIO":0.7}`,
		`{"Window":64000,"window":32000}`, `{"output_reserved":1000,"output_reserved_tokens":2000}`,
	} {
		var b budget
		err := json.Unmarshal([]byte(in), &b)
		if err == nil || !strings.Contains(err.Error(), "the same knob") {
			t.Errorf("%s: %v, want a refusal", in, err)
		}
	}
}
