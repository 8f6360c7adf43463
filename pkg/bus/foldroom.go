package bus

// place is where a fold stands among those that want a slot.
type place struct {
	tenant     string
	room       int    // permille of the window left, of its most urgent caller; less is more urgent
	background bool   // no caller waits for it
	order      uint64 // of arrival
}

// before reports whether a free slot goes to a rather than to b. Callers go before jobs of the queue. Among them: the
// tenant with the fewest folds running, which keeps every tenant to its share while others wait; then the least room;
// then the oldest.
func (a *place) before(b *place, running map[string]int) bool {
	switch {
	case a.background != b.background:
		return b.background
	case running[a.tenant] != running[b.tenant]:
		return running[a.tenant] < running[b.tenant]
	case a.room != b.room:
		return a.room < b.room
	}
	return a.order < b.order
}

// lessUrgent reports whether a would leave a full waiting room before b does.
func (a *place) lessUrgent(b *place) bool {
	if a.room != b.room {
		return a.room > b.room
	}
	return a.order > b.order
}

// nextPlace is who gets a free slot: an index, -1 for nobody. Jobs count only where they may have a slot.
func nextPlace(waiting []*place, running map[string]int, jobs bool) int {
	next := -1
	for i, p := range waiting {
		if p.background && !jobs {
			continue
		}
		if next < 0 || p.before(waiting[next], running) {
			next = i
		}
	}
	return next
}

// displaced is whom a newcomer sends away from a full waiting room: an index, -1 if it is the newcomer itself. A tenant
// that holds at least two places more than the newcomer's gives one up, whatever its urgency, so that a flood of one
// tenant shuts nobody out. Else the least urgent goes if the newcomer is more urgent, but never one of a tenant that
// holds fewer places than the newcomer's.
func displaced(waiting []*place, newcomer *place) int {
	places := map[string]int{}
	for _, p := range waiting {
		if !p.background {
			places[p.tenant]++
		}
	}
	own, most := places[newcomer.tenant], 0
	for _, n := range places {
		most = max(most, n)
	}
	flooded := most >= own+2
	worst := -1
	for i, p := range waiting {
		switch {
		case p.background, places[p.tenant] < own, flooded && places[p.tenant] < most:
			continue
		case worst < 0 || p.lessUrgent(waiting[worst]):
			worst = i
		}
	}
	if worst >= 0 && (flooded || newcomer.room < waiting[worst].room) {
		return worst
	}
	return -1
}
