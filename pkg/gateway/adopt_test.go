package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/internal/node/nodetest"
	"github.com/ullage/ullage/pkg/wire"
)

// elements are the elements of a body's message array.
func elements(t *testing.T, f wire.Format, body []byte) (out [][]byte) {
	t.Helper()
	name := "messages"
	if f == wire.Responses {
		name = "input"
	}
	var req map[string]json.RawMessage
	var items []json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(req[name], &items); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		out = append(out, it)
	}
	return out
}

// recorded is the record read back.
func recorded(t *testing.T, n *nodetest.Node, task string) [][]byte {
	t.Helper()
	var out struct{ Messages []json.RawMessage }
	n.Call("GET", "/v1/tasks/"+task+"/messages", nil).Into(t, http.StatusOK, &out)
	rows := make([][]byte, len(out.Messages))
	for i := range out.Messages {
		rows[i] = out.Messages[i]
	}
	return rows
}

// TestAdopted: a client that takes our view over as its history sends back what we made. It is matched to what it was made
// of, and nothing of ours is recorded as the user's.
func TestAdopted(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		for _, every := range []int{1, 6} {
			t.Run(fmt.Sprintf("%s/every %d", f, every), func(t *testing.T) {
				t.Parallel()
				n := nodetest.Start(t, t.TempDir())
				talk, client := nodetest.NewTalk(f), nodetest.NewTalk(f)
				talk.User("Read on and tell me what you find.")
				client.Items = append(client.Items, talk.Items...)
				var sent []nodetest.Stepped
				for i := range 18 {
					v := n.Step("adopted", client, client.Body(), nil)
					sent = append(sent, v)
					n.Settle("adopted")
					if i%every == every-1 {
						client.Items = elements(t, f, v.Body)
					}
					had := len(talk.Items)
					talk.Work(fmt.Sprintf("a%02d", i), 1, 100)
					client.Items = append(client.Items, talk.Items[had:]...)
				}
				talk.Items = talk.Items[:len(talk.Items)-delta(f)]
				rows := recorded(t, n, "adopted")
				for i := range rows {
					if i >= len(talk.Items) || !bytes.Equal(rows[i], talk.Items[i]) {
						t.Fatalf("recorded message %d of %d (the agent sent %d): %.300s", i, len(rows), len(talk.Items), rows[i])
					}
				}
				if len(rows) != len(talk.Items) {
					t.Fatalf("%d messages recorded, the agent sent %d", len(rows), len(talk.Items))
				}
				if last := sent[len(sent)-1]; last.Report.Restored.FoldSteps == 0 {
					t.Fatal("nothing was folded: the history is too small for this test")
				} else if c := strings.Count(string(last.Body), "## Task Context"); c != 1 {
					t.Fatalf("%d heads in the view", c)
				}
				travel(t, n, "adopted", sent)
			})
		}
	}
}

// TestRepeated: the same call twice gives the same bytes, and the second is not recorded.
func TestRepeated(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, t.TempDir())
	talk := nodetest.NewTalk(wire.Anthropic)
	talk.User("Read on.")
	for i := range 14 {
		usage := map[string]any{}
		if i > 0 {
			usage["usage"] = map[string]any{"input_tokens": 900 * i, "output_tokens": 40}
		}
		a := n.Step("twice", talk, talk.Body(), usage)
		b := n.Step("twice", talk, talk.Body(), usage)
		if d := same(a, b); d != "" {
			t.Fatalf("step %d: %s", i+1, d)
		}
		if a.Fence != b.Fence {
			t.Errorf("step %d: the second call was recorded", i+1)
		}
		n.Settle("twice")
		talk.Work(fmt.Sprintf("r%02d", i), 1, 90)
	}
	if got := len(n.Steps("twice")); got != 14 {
		t.Errorf("%d boundaries recorded, want 14", got)
	}
	p := n.Preflight("twice", talk, talk.Body(), nil)
	q := n.Preflight("twice", talk, talk.Body(), nil)
	if d := cmp.Diff(p.Fence, q.Fence) + same(p, q); d != "" {
		t.Errorf("preflight: %s", d)
	}
}
