package demo

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// reader deals out the tree's files in parts of a wanted size, a directory after the other in turn, so that what is
// read differs from step to step and is the same for the same tree.
type reader struct {
	files []*file
	from  []int // by file: lines that were dealt out
	next  int
	big   []*file // largest first
	bigAt int
	wide  int // searches dealt out
}

// notWorth are files that an agent learns nothing from.
var notWorth = regexp.MustCompile(`(^|/)(go\.sum|package-lock\.json|[^/]*\.(lock|svg|sum|min\.js|min\.css|map|csv))$`)

// newReader orders a tree's files: the directories with most text first, and of each its largest file first.
func newReader(t *tree) *reader {
	dirs := make(map[string][]*file)
	weight := make(map[string]int)
	main := mainExt(t)
	for i := range t.files {
		f := &t.files[i]
		if notWorth.MatchString(f.path) || len(f.lines) < 5 {
			continue
		}
		dir := path.Dir(f.path)
		dirs[dir] = append(dirs[dir], f)
		weight[dir] += f.size
		if f.ext() == main {
			weight[dir] += 4 * f.size
		}
	}
	names := make([]string, 0, len(dirs))
	for d, fs := range dirs {
		names = append(names, d)
		sort.Slice(fs, func(i, j int) bool {
			a, b := fs[i], fs[j]
			if (a.ext() == main) != (b.ext() == main) {
				return a.ext() == main
			}
			if ta, tb := isTest(a.path), isTest(b.path); ta != tb {
				return tb
			}
			if a.size != b.size {
				return a.size > b.size
			}
			return a.path < b.path
		})
	}
	sort.Slice(names, func(i, j int) bool {
		if weight[names[i]] != weight[names[j]] {
			return weight[names[i]] > weight[names[j]]
		}
		return names[i] < names[j]
	})
	r := &reader{}
	for row, more := 0, true; more; row++ {
		more = false
		for _, d := range names {
			if row < len(dirs[d]) {
				r.files = append(r.files, dirs[d][row])
				more = true
			}
		}
	}
	r.from = make([]int, len(r.files))
	r.big = slices.Clone(r.files)
	sort.SliceStable(r.big, func(i, j int) bool { return r.big[i].size > r.big[j].size })
	return r
}

func isTest(p string) bool { return strings.Contains(strings.ToLower(path.Base(p)), "test") }

// mainExt is the extension that most of the tree's text has, documents and data aside.
func mainExt(t *tree) string {
	sum := make(map[string]int)
	for i := range t.files {
		switch ext := t.files[i].ext(); ext {
		case "", ".md", ".txt", ".json", ".yaml", ".yml", ".sum", ".lock", ".html", ".css", ".csv", ".svg", ".xml", ".rst":
		default:
			sum[ext] += t.files[i].size
		}
	}
	best := ""
	for ext, n := range sum {
		if best == "" || n > sum[best] || n == sum[best] && ext < best {
			best = ext
		}
	}
	return best
}

// deal gives the next read of about want bytes as the tool shows them, and at least least. Read to the end, the tree
// is begun anew.
func (r *reader) deal(want, least int) (planned, int) {
	for range 2 {
		for range r.files {
			i := r.next
			r.next = (r.next + 1) % len(r.files)
			f, from := r.files[i], r.from[i]
			to, size := from, 0
			for to < len(f.lines) && size < want {
				size += shownBytes(f.lines[to])
				to++
			}
			if size < least {
				continue
			}
			r.from[i] = to
			return readOf(f, from, to), size
		}
		clear(r.from)
	}
	// No file holds as much: the largest, whole.
	f := slices.MaxFunc(r.files, func(a, b *file) int { return a.size - b.size })
	return readOf(f, 0, len(f.lines)), f.size
}

// shownBytes is what a line takes in a read's output.
func shownBytes(line string) int { return min(len(line), maxLine) + 8 }

// reads deals out reads of about each bytes until together they take about total.
func (r *reader) reads(total, each, least int) []planned {
	var out []planned
	for sum := 0; sum < total-each/3 && len(out) < 24; {
		p, n := r.deal(min(each, max(total-sum, least+200)), least)
		out = append(out, p)
		sum += n
	}
	return out
}

// large deals out calls of about each tokens until together they take about total tokens: the beginnings of the
// largest files, or, where no file is so large, wide searches.
func (r *reader) large(t *tree, total, each int) []planned {
	var out []planned
	for sum := 0; sum < total*4-1_200 && len(out) < 16; {
		want := min(each*4, max(total*4-sum, 6_000))
		f := r.big[r.bigAt%len(r.big)]
		if f.size < want*6/10 && r.bigAt > 0 {
			r.bigAt = 0 // the largest once more
			f = r.big[0]
		}
		r.bigAt++
		if f.size < want*6/10 {
			p, n := r.search(t, want)
			out, sum = append(out, p), sum+n
			continue
		}
		to, size := 0, 0
		for to < len(f.lines) && size < want {
			size += shownBytes(f.lines[to])
			to++
		}
		out, sum = append(out, readOf(f, 0, to)), sum+size
	}
	return out
}

// common are patterns that occur in any tree, the less common first.
var common = []string{"return", "error", "if ", "for ", "the ", "=", "e"}

// search plans a search that finds about want bytes.
func (r *reader) search(t *tree, want int) (planned, int) {
	for i := range common {
		pattern := common[(r.wide+i)%len(common)]
		size, lines := 0, 0
		for k := range t.files {
			f := &t.files[k]
			for _, line := range f.lines {
				if size < want && strings.Contains(line, pattern) {
					size += len(f.path) + 7 + min(len(line), maxLine)
					lines++
				}
			}
		}
		if size < want && i < len(common)-1 {
			continue
		}
		r.wide++
		return planned{tool: toolGrep, in: toolInput{Pattern: pattern, HeadLimit: lines}, target: pattern}, size
	}
	return planned{}, 0 // not reached: the last pattern is taken as it is
}

func readOf(f *file, from, to int) planned {
	p := planned{tool: toolRead, in: toolInput{FilePath: f.path}, target: f.path}
	if from > 0 || to < len(f.lines) {
		p.in.Offset, p.in.Limit = from+1, to-from
		p.target = fmt.Sprintf("%s:%d-%d", f.path, from+1, to)
	}
	return p
}

// declares finds the name that a line of code declares.
var declares = regexp.MustCompile(`^\s*(?:export\s+|pub\s+|public\s+|async\s+)*(?:func|type|class|def|fn|struct|enum|interface|trait|module|function)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{3,})`)

// word is for files that declare nothing.
var word = regexp.MustCompile(`[A-Za-z_]\w{5,}`)

// name picks something of a file to search for; n tells the picks of one file apart.
func (f *file) name(n int) string {
	var names []string
	for _, line := range f.lines {
		if m := declares.FindStringSubmatch(line); m != nil && !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		for _, line := range f.lines {
			if w := word.FindString(line); w != "" && !slices.Contains(names, w) {
				names = append(names, w)
			}
		}
	}
	if len(names) == 0 {
		return f.lines[0]
	}
	return names[n%len(names)]
}
