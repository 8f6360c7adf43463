package transcript

import (
	"github.com/tidwall/gjson"

	"github.com/ullage/ullage/pkg/wire"
)

// readTauBench reads a results file of tau-bench: one task for each (task_id, trial).
func readTauBench(f *File, v gjson.Result) {
	f.Source = "tau-bench"
	each(v, func(run gjson.Result) {
		if !run.Get("traj").IsArray() {
			f.Repairs.UnknownRecords++
			return
		}
		t := Task{ID: run.Get("task_id").String() + "-" + run.Get("trial").String(), Format: wire.Chat}
		var events []event
		each(run.Get("traj"), func(m gjson.Result) { events = append(events, chatEvents(m, &t.Repairs)...) })
		assemble(&t, events, envelope{})
		f.Tasks = append(f.Tasks, t)
	})
}
