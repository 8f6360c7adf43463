package constitution

import "github.com/ullage/ullage/pkg/engine"

// Compare says how far old, a fold upon folds, had come from fresh, made from raw. It counts the lines of the fact
// sections, wherever demotion has put them: the requests are code's own and cannot drift, and Current state is
// written anew by every fold. Each line of fresh is met by one of old at most.
func Compare(old, fresh Digest) engine.Drift {
	o, f := old.lines(), fresh.lines()
	var d engine.Drift
	d.Kept, o, f = meet(o, f, Fact.text)
	d.Reworded, o, f = meet(o, f, func(f Fact) string { return f.Key })
	d.Lost, d.Gained = len(o), len(f)
	return d
}

// lines are the facts of all sections.
func (d Digest) lines() []Fact {
	var all []Fact
	for s := Deliverables; s <= Archived; s++ {
		all = append(all, d.Facts[s]...)
	}
	return all
}

// meet pairs the facts of two lists that are equal by what by says, and returns how many pairs there are and what
// has no partner.
func meet(a, b []Fact, by func(Fact) string) (n int, restA, restB []Fact) {
	free := map[string]int{}
	for _, f := range b {
		free[by(f)]++
	}
	met := map[string]int{}
	for _, f := range a {
		if k := by(f); free[k] > met[k] {
			met[k]++
			n++
		} else {
			restA = append(restA, f)
		}
	}
	for _, f := range b {
		if k := by(f); met[k] > 0 {
			met[k]--
		} else {
			restB = append(restB, f)
		}
	}
	return n, restA, restB
}
