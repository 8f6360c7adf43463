package constitution

// Merge is prior with next added behind it. Every line of prior stays; one changes only where next has a fact under
// the same key in the same section and about the same subject, and then in place. A key that is used again for
// another subject, a P0 rule, and a deliverable's key with another path are not overwritten: what is new gets a key
// of its own. Requests of prior keep ordinal and form; of next's, those behind prior's last are taken. Current
// state is next's, unless next has none.
//
// Both must pass [Digest.Check]; the result does.
func Merge(prior, next Digest) Digest {
	d := prior.Clone()
	last := prior.LastRequest()
	for _, r := range next.Requests {
		if r.N > last {
			d.Requests = append(d.Requests, r)
		}
	}
	for s := Deliverables; s <= Archived; s++ {
		d.Facts[s] = mergeFacts(s, d.Facts[s], next.Facts[s])
	}
	if !next.State.empty() {
		d.State = next.Clone().State
	}
	return d
}

func mergeFacts(s Section, facts, next []Fact) []Fact {
	at := make(map[string]int, len(facts)+len(next))
	for i, f := range facts {
		at[f.Key] = i
	}
	again := make(map[string]bool, len(next)) // keys that next speaks of: their old words may not stay
	for _, f := range next {
		again[f.Key] = true
	}
	old := len(facts)
	said := make(map[string]bool, len(facts))
	paths := map[string]int{}
	for i, f := range facts {
		said[f.text()] = !again[f.Key] || said[f.text()]
		if s == Deliverables {
			paths[f.Path()] = i
		}
	}
	for _, f := range next {
		if said[f.text()] {
			continue
		}
		said[f.text()] = true
		if s == Deliverables {
			if i, ok := paths[f.Path()]; ok {
				f.Key = facts[i].Key
				facts[i] = f
				continue
			}
		}
		i, used := at[f.Key]
		if used && facts[i] == f {
			continue
		}
		if used && i < old && supersedes(s, facts[i], f) {
			facts[i] = f
			continue
		}
		if used {
			for used {
				f.Key = nextKey(f.Key)
				_, used = at[f.Key]
			}
		}
		at[f.Key] = len(facts)
		if s == Deliverables {
			paths[f.Path()] = len(facts)
		}
		facts = append(facts, f)
	}
	return facts
}

// supersedes reports whether next may stand in old's place under its key.
func supersedes(s Section, old, next Fact) bool {
	return !old.P0(s) && s != Deliverables && sameSubject(old.Statement, next.Statement)
}

// Renumber gives the requests of d the ordinals that follow after, in order: the digest of a later part of a
// history whose earlier part holds that many requests. It is for digests that nobody has been shown yet.
func Renumber(d Digest, after int) Digest {
	d = d.Clone()
	for i := range d.Requests {
		r := &d.Requests[i]
		span := r.last() - r.N
		r.N = after + 1
		if r.Form == RunOff {
			r.To = r.N + span
		}
		after = r.last()
	}
	return d
}
