package toolrule

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/tidwall/gjson"
)

// Op is what a call does to a file.
type Op uint8

// The operations. Write replaces or creates the whole file; Edit changes part of it, or removes it.
const (
	NoAccess Op = iota
	Read
	Write
	Edit
)

var opNames = [...]string{"none", "read", "write", "edit"}

func (o Op) String() string { return opNames[o] }

// Access says which file a call touches. It is told from name and arguments alone: whether the call succeeded is for
// the caller to look at.
type Access struct {
	Path string
	// More are the other files of a call that touches several (a patch, a read of many).
	More []string
	Op   Op
	// Whole: a read that asks for no part of the file, or a write.
	Whole bool
}

type accessKind uint8

// How the arguments of a tool name the file: in a field of a reading, writing or editing tool; with a command field
// that says which of these (str_replace editors); in the headers of a patch; in a command line.
const (
	accessNone accessKind = iota
	accessRead
	accessWrite
	accessEdit
	accessEditor
	accessPatch
	accessShell
)

var accessNames = [...]string{"none", "read", "write", "edit", "editor", "patch", "shell"}

type accessSpec struct {
	kind   accessKind
	path   []string // fields that may hold the path
	ranges []string // fields that ask for a part
}

// maxAccess bounds the arguments that are looked into field by field; a patch's headers are found in longer ones too.
const maxAccess = 4 << 20

// Access returns which file a call touches; the zero Access if none, or if that is not certain.
func (t *Table) Access(name string, input []byte) Access {
	r := t.Rule(name)
	spec := r.access
	if spec.kind == accessNone || len(input) > maxAccess {
		return Access{}
	}
	if spec.kind == accessShell {
		return shellAccess(command(input))
	}
	if !json.Valid(input) {
		if spec.kind == accessPatch || spec.kind == accessEdit {
			return patchAccess(string(input))
		}
		return Access{}
	}
	v := gjson.ParseBytes(input)
	if spec.kind == accessPatch {
		return patchAccess(firstString(v, "input", "patch", "patch_text", "patchText", "diff"))
	}
	a := Access{Op: Op(spec.kind)}
	if spec.kind == accessEditor {
		switch v.Get("command").Str {
		case "view":
			a.Op = Read
		case "create":
			a.Op = Write
		case "str_replace", "insert", "undo_edit":
			a.Op = Edit
		default:
			return Access{}
		}
	}
	paths := spec.paths(v)
	if len(paths) == 0 {
		if spec.kind == accessEdit {
			return patchAccess(firstString(v, "input", "diff"))
		}
		return Access{}
	}
	a.Path, a.More = paths[0], paths[1:]
	if len(a.More) == 0 {
		a.More = nil
	}
	a.Whole = a.Op == Write
	if a.Op == Read {
		var part bool
		a.Path, part = splitRange(a.Path)
		a.Whole = !part && !spec.partial(v)
	}
	if strings.Contains(a.Path, "://") {
		return Access{}
	}
	return a
}

// paths are the files named by the first of the fields that names any: a string, a list of strings, or a list of
// objects with one of the same fields.
func (s accessSpec) paths(v gjson.Result) []string {
	for _, f := range s.path {
		var out []string
		switch p := v.Get(f); {
		case p.Type == gjson.String && p.Str != "":
			out = append(out, cleanPath(p.Str))
		case p.IsArray():
			for _, e := range p.Array() {
				if e.Type == gjson.String && e.Str != "" {
					out = append(out, cleanPath(e.Str))
				} else if e.IsObject() {
					if q := firstString(e, s.path...); q != "" {
						out = append(out, cleanPath(q))
					}
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// partial reports whether a read asks for a part. A first line of 0 or 1 and a range of 1 to -1 ask for all.
func (s accessSpec) partial(v gjson.Result) bool {
	for _, f := range s.ranges {
		switch p := v.Get(f); {
		case !p.Exists() || p.Type == gjson.Null:
		case p.IsArray():
			if e := p.Array(); len(e) == 2 && e[0].Int() <= 1 && e[1].Int() == -1 || len(e) == 0 {
				continue
			}
			return true
		case p.Type == gjson.Number && p.Num <= 1 && p.Num >= 0 && !strings.Contains(strings.ToLower(f), "end") && f != "limit":
		case p.Type == gjson.Number && p.Num <= 0:
		case p.Type == gjson.String && p.Str == "", p.Type == gjson.False:
		default:
			return true
		}
	}
	return false
}

func firstString(v gjson.Result, fields ...string) string {
	for _, f := range fields {
		if p := v.Get(f); p.Type == gjson.String && p.Str != "" {
			return p.Str
		}
	}
	return ""
}

// cleanPath makes ./a/../b and b the same; a Windows path stays as it is.
func cleanPath(p string) string {
	if strings.Contains(p, `\`) || strings.Contains(p, "://") {
		return p
	}
	return path.Clean(p)
}

// splitRange takes ":10-40" or ":10" off a path, as some tools write a part of a file.
func splitRange(p string) (file string, part bool) {
	i := strings.LastIndexByte(p, ':')
	if i <= 1 || i+1 == len(p) || strings.Trim(p[i+1:], "0123456789-+") != "" {
		return p, false
	}
	return p[:i], true
}

// patchAccess reads the headers of a patch: apply_patch's own, those of a unified diff, or "§path".
func patchAccess(patch string) Access {
	var a Access
	written := true // by every header so far
	seen := map[string]bool{}
	add := func(p string, op Op) {
		p = cleanPath(strings.TrimSpace(p))
		if p == "." || p == "/dev/null" {
			return
		}
		if written = written && op == Write; written {
			a.Op = Write
		} else {
			a.Op = Edit
		}
		switch {
		case seen[p]:
		case a.Path == "":
			a.Path = p
		default:
			a.More = append(a.More, p)
		}
		seen[p] = true
	}
	apply := strings.Contains(patch, "*** Begin Patch")
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "*** Add File: "):
			add(line[len("*** Add File: "):], Write)
		case strings.HasPrefix(line, "*** Update File: "):
			add(line[len("*** Update File: "):], Edit)
		case strings.HasPrefix(line, "*** Delete File: "):
			add(line[len("*** Delete File: "):], Edit)
		case strings.HasPrefix(line, "*** Move to: "):
			add(line[len("*** Move to: "):], Edit)
		case strings.HasPrefix(line, "§"):
			add(line[len("§"):], Edit)
		case !apply && strings.HasPrefix(line, "+++ "):
			p, _, _ := strings.Cut(line[len("+++ "):], "\t")
			add(strings.TrimPrefix(p, "b/"), Edit)
		}
	}
	a.Whole = a.Op == Write
	return a
}

// shellAccess reads a command line, and only where nothing about it is in doubt: one plain "cat path", or a patch that
// is applied by name.
func shellAccess(line string) Access {
	if strings.HasPrefix(line, "apply_patch") && strings.Contains(line, "*** Begin Patch") {
		return patchAccess(line)
	}
	words := strings.Fields(line[:min(len(line), 2*look)])
	if len(line) > 2*look || len(words) != 2 || words[0] != "cat" && words[0] != "nl" && words[0] != "bat" {
		return Access{}
	}
	p := words[1]
	for i := 0; i < len(p); i++ {
		if c := p[i]; !word(c) && (c < '0' || c > '9') && !strings.ContainsRune("/.-+@=,", rune(c)) || i == 0 && c == '-' {
			return Access{}
		}
	}
	return Access{Path: cleanPath(p), Op: Read, Whole: true}
}
