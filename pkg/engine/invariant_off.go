//go:build !invariants

package engine

// decideTwice is decide; with the build tag "invariants" it runs the operation twice and compares.
func (s *State) decideTwice(in Input, fold FoldFunc) Output { return s.decide(in, fold) }

func (s *State) mustCheck(string) {}
