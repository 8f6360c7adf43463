package constitution

import "github.com/ullage/ullage/pkg/toolrule"

// Tools is what the law asks of the table of tool rules; *[toolrule.Table] answers it.
type Tools interface {
	// Ships reports whether a tool is ruled as shipping a deliverable.
	Ships(name string) bool
	// Access says which files a call reads, writes or edits.
	Access(name string, input []byte) toolrule.Access
}

var _ Tools = (*toolrule.Table)(nil)

// noTools is a table without rules.
type noTools struct{}

func (noTools) Ships(string) bool                     { return false }
func (noTools) Access(string, []byte) toolrule.Access { return toolrule.Access{} }
