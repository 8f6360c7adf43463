package engine

// FileAccess says which file a tool call touches. The engine asks it of the tool rules, to find reads that a later
// whole read or an edit of the same file has superseded.
type FileAccess struct {
	Path  string // "" if the call touches no file
	Read  bool
	Whole bool // a read of the whole file
	Write bool // a write or an edit
}

// AccessFunc classifies a call by its tool's name and its arguments (JSON, or free text). It must be pure.
type AccessFunc func(name, input string) FileAccess

func (s *State) fileAccess(i int, f AccessFunc) FileAccess {
	if f == nil {
		return FileAccess{}
	}
	if a, ok := s.access[i]; ok {
		return a
	}
	c := s.call(&s.parts[i])
	a := f(c.Name, c.Input.String())
	s.access[i] = a
	return a
}

// superseded marks the reads whose file a later call read whole or changed. Calls that failed or that still run
// supersede nothing.
func (s *State) superseded(f AccessFunc) map[int]bool {
	if f == nil {
		return nil
	}
	out := make(map[int]bool)
	later := make(map[string]bool)
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := &s.parts[i]
		if p.Kind != KindCall || p.open() {
			continue
		}
		a := s.fileAccess(i, f)
		if a.Path == "" {
			continue
		}
		if s.result(p).IsError {
			continue
		}
		if a.Read && !a.Write && later[a.Path] {
			out[i] = true
		}
		if a.Whole || a.Write {
			later[a.Path] = true
		}
	}
	return out
}
