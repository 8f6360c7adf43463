package load

import (
	"bytes"
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/wire"
)

// view is what the last boundary sent.
type view struct {
	sum   string
	body  []byte
	array []byte // its messages without cache markers, and without the closing bracket
	turn  int
}

// check holds an answer against the rules, given the view before it. Each fault is a sentence.
func check(name string, a *answer, last *view) (now *view, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	now = &view{sum: a.View, body: a.Body, turn: a.Report.Turn}
	if sum := engine.Sum(a.Body).String(); sum != a.View {
		fault("its digest is %.12s and the answer says %.12s", sum, a.View)
	}
	if a.Report.ViewTok > a.Report.WEff && a.Outcome != string(engine.HardLimit) {
		fault("it takes %d tokens, over %d, and its outcome is %s", a.Report.ViewTok, a.Report.WEff, a.Outcome)
	}
	req, err := wire.Decode(wire.Anthropic, a.Body)
	if err == nil {
		err = wire.Check(req)
	}
	if err != nil {
		fault("the provider would refuse it: %v", err)
		return now, faults
	}
	now.array = req.MessagesOnly()
	if a.Report.Bytes != len(now.array) {
		fault("its messages have %d bytes and the report says %d", len(now.array), a.Report.Bytes)
	}
	if last == nil || last.array == nil {
		return now, faults
	}
	still := a.Report.Tier == 0 && len(a.Report.Fold) == 0 && name == stepName && a.Report.Turn == last.turn
	if still && !bytes.HasPrefix(now.array, last.array) {
		fault("nothing was reduced (%s), and the prefix sent before has changed at byte %d of %d", a.Outcome, shared(now.array, last.array), len(last.array))
	}
	return now, faults
}

func shared(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
