package node

import (
	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

// tools asks the tool rules what a decision needs to know.
type tools struct{ *toolrule.Table }

// FileAccess says which file a call touches.
func (t tools) FileAccess(name, input string) engine.FileAccess {
	a := t.Access(name, []byte(input))
	return engine.FileAccess{
		Path: a.Path, Read: a.Op == toolrule.Read, Whole: a.Whole && a.Op == toolrule.Read,
		Write: a.Op == toolrule.Write || a.Op == toolrule.Edit,
	}
}
