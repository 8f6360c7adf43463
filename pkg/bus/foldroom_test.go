package bus

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func places(t *rapid.T) []*place {
	n := rapid.IntRange(0, 12).Draw(t, "waiting")
	var waiting []*place
	for i := range n {
		waiting = append(waiting, drawPlace(t, uint64(i)))
	}
	return waiting
}

func drawPlace(t *rapid.T, order uint64) *place {
	return &place{
		tenant: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"), room: rapid.IntRange(0, 4).Draw(t, "room"),
		background: rapid.IntRange(0, 5).Draw(t, "background") == 0, order: order,
	}
}

// The law of a free slot: no job before a caller; no tenant before one that has fewer folds running; within a tenant
// the most urgent, then the oldest; and nobody only where nobody waits who may have it.
func TestNextPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waiting, jobs := places(t), rapid.Bool().Draw(t, "jobs")
		running := map[string]int{}
		for _, tenant := range []string{"a", "b", "c"} {
			running[tenant] = rapid.IntRange(0, 3).Draw(t, "running "+tenant)
		}
		i := nextPlace(waiting, running, jobs)
		if i < 0 {
			if slices.ContainsFunc(waiting, func(p *place) bool { return !p.background || jobs }) {
				t.Fatal("nobody, and somebody waits")
			}
			return
		}
		won := waiting[i]
		if won.background && !jobs {
			t.Fatal("a job got a slot that jobs may not have")
		}
		for _, p := range waiting {
			switch {
			case p == won || p.background && !won.background:
			case won.background && !p.background:
				t.Fatal("a job went before a caller")
			case running[p.tenant] < running[won.tenant]:
				t.Fatalf("tenant %s has %d running and went before %s with %d", won.tenant, running[won.tenant], p.tenant, running[p.tenant])
			case p.tenant == won.tenant && (p.room < won.room || p.room == won.room && p.order < won.order):
				t.Fatalf("of one tenant %+v went before %+v", *won, *p)
			}
		}
	})
}

// The law of a full room: whoever leaves it is less urgent than the newcomer, or of a tenant that holds more places
// still when it has left one to the newcomer; no job leaves; of one tenant the least urgent and newest leaves.
func TestDisplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waiting := places(t)
		newcomer := drawPlace(t, 99)
		newcomer.background = false
		held := map[string]int{}
		for _, p := range waiting {
			if !p.background {
				held[p.tenant]++
			}
		}
		i := displaced(waiting, newcomer)
		if i < 0 {
			for _, p := range waiting {
				if p.background {
					continue
				}
				if held[p.tenant] >= held[newcomer.tenant]+2 {
					t.Fatal("a tenant shut another one out of the room")
				}
				if held[p.tenant] >= held[newcomer.tenant] && p.room > newcomer.room {
					t.Fatal("a more urgent newcomer was sent away")
				}
			}
			return
		}
		left := waiting[i]
		if left.background {
			t.Fatal("a job left the room")
		}
		if left.room <= newcomer.room && held[left.tenant] < held[newcomer.tenant]+2 {
			t.Fatalf("%+v left for %+v", *left, *newcomer)
		}
		if held[left.tenant] < held[newcomer.tenant] {
			t.Fatal("a tenant with fewer places gave one up")
		}
		for _, p := range waiting {
			if p != left && !p.background && p.tenant == left.tenant && p.lessUrgent(left) {
				t.Fatalf("%+v left, and %+v is less urgent", *left, *p)
			}
		}
	})
}

// However requests come and folds end, tenants that all keep waiting end up with equal shares, and every one of them
// is served.
func TestSharesEvenOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(3, 9).Draw(t, "slots")
		running := map[string]int{"a": slots} // one tenant took them all while nobody else was there
		served := map[string]int{}
		for round := range 4 * slots {
			var waiting []*place
			for i, tenant := range []string{"a", "b", "c"} {
				waiting = append(waiting, &place{tenant: tenant, room: rapid.IntRange(0, 999).Draw(t, "room"), order: uint64(3*round + i)})
			}
			var ending []string
			for tenant, n := range running {
				if n > 0 {
					ending = append(ending, tenant)
				}
			}
			slices.Sort(ending)
			running[ending[rapid.IntRange(0, len(ending)-1).Draw(t, "ends")]]--
			next := waiting[nextPlace(waiting, running, true)].tenant
			running[next]++
			served[next]++
			if share := slots/3 + 1; next != "a" && running[next] > share {
				t.Fatalf("%s holds %d of %d slots while others wait", next, running[next], slots)
			}
		}
		if served["b"] == 0 || served["c"] == 0 {
			t.Fatalf("served %v", served)
		}
	})
}
