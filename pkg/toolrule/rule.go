package toolrule

import "strconv"

// Kind is how a rule reduces.
type Kind uint8

// The kinds. TopN keeps the first matches or entries, spread over files or directories, and counts the rest.
// HeadTail keeps both ends, and between them the lines that stand out. LLM lets a model write the form. Drop purges.
// None leaves the part as it is.
const (
	None Kind = iota
	TopN
	HeadTail
	LLM
	Drop
)

var kindNames = [...]string{"none", "top_n", "head_tail", "llm", "drop"}

func (k Kind) String() string { return kindNames[k] }

// Style says which lines of the middle stand out.
type Style uint8

// The styles. Code: lines that declare something, headings. Log: failures, exit status, counts. Patch: the heads of
// files and hunks, then declarations. Shell: as the command tells: Code for cat and its like, matches or entries
// for grep and ls, else Log. Plain: failures first, then what Code keeps.
const (
	Plain Style = iota
	Code
	Log
	Patch
	Shell
)

var styleNames = [...]string{"plain", "code", "log", "patch", "shell"}

func (s Style) String() string { return styleNames[s] }

// Group says over what a TopN rule spreads what it keeps.
type Group uint8

// The groups: by the file that a match is in, by the directory of an entry, or none.
const (
	ByNone Group = iota
	ByFile
	ByDir
)

var groupNames = [...]string{"none", "file", "dir"}

func (g Group) String() string { return groupNames[g] }

// Rule is what one tool may lose. The zero Rule leaves everything as it is.
type Rule struct {
	Name    string
	Version int
	Kind    Kind
	Style   Style
	By      Group
	Head    int // lines kept at the start
	Tail    int // lines kept at the end
	Gist    int // lines kept of the middle, at most
	Top     int // matches or entries kept
	Items   int // elements kept of a JSON array
	// LineBytes is where a longer line is cut, if the text has many lines.
	LineBytes int
	// Bytes is what the whole form aims to stay under. It never takes more than half of what it replaces.
	Bytes int
	// Ships: the tool ships a deliverable (the specification's complete).
	Ships bool

	access accessSpec
}

// ID is the rule's name and version, as in Form.Rule: "read/1".
func (r Rule) ID() string { return r.Name + "/" + strconv.Itoa(r.Version) }
