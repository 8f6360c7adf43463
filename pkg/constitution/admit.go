package constitution

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// admit holds a proposed line against the record. It returns the line as it may stand and the section it belongs in,
// or the kind of repair for which it is refused.
func (a *adoption) admit(s Section, f Fact, stray bool) (Fact, Section, string) {
	if s == Constraints {
		return a.constraint(f)
	}
	if s == Deliverables {
		return a.deliverable(f)
	}
	if s == Decisions {
		return a.decision(f)
	}
	if s != RuledOut {
		s = Findings
	}
	return a.finding(f, s, stray)
}

// constraint takes a proposed limit only in the user's own words.
func (a *adoption) constraint(f Fact) (Fact, Section, string) {
	own := a.said.cite(f.Statement)
	if own == "" || strings.HasSuffix(own, "?") || strings.HasSuffix(own, "？") {
		return f, Constraints, repairNotUsers
	}
	if unended(folded(own)) != unended(folded(f.Statement)) {
		a.repairs[repairConstraint]++
	}
	rule := NewFact(f.Key, own)
	if !Fact.P0(Fact{Key: f.Key}, Constraints) {
		return rule, Constraints, ""
	}
	// A model may not make of any wish one that is never demoted.
	switch {
	case languageWords.MatchString(own):
		rule.Key = "reply-language-" + kebab(own, 5)
	case strings.HasPrefix(f.Key, "pinned") || !aboutSafety(own):
		rule.Key = ruleKey(own)
	}
	return rule, Constraints, ""
}

// decision takes a choice that the user or the agent made. What only a tool's output says is no decision; an order
// that stands there is nothing at all.
func (a *adoption) decision(f Fact) (Fact, Section, string) {
	if !a.quotes(&f) {
		return f, Decisions, repairQuote
	}
	if a.e.borrowed(f.Statement) {
		return f, Decisions, repairInstruction
	}
	if f.P0(Decisions) {
		f.Key = kebab(f.Statement, 6) // only the user's rules are never demoted
		a.repairs[repairKey]++
		if f.P0(Decisions) {
			f.Key = "choice-" + f.Key
		}
	}
	switch a.e.origin(f.Statement) {
	case ours:
		return a.assume(f), Decisions, ""
	case read:
		if orders(f.Statement) {
			return f, Decisions, repairInstruction
		}
		f.Confidence = Reported
	case nobodySaid:
		if commands(f.Statement) {
			return f, Decisions, repairInstruction
		}
		f.Confidence = Assumed
	}
	a.repairs[repairNotTheirs]++
	f, _, kind := a.finding(f, Findings, false)
	return f, Findings, kind
}

// finding takes what was found out or ruled out. stray lines, under a heading that is none of ours, must cite
// something to be taken.
func (a *adoption) finding(f Fact, s Section, stray bool) (Fact, Section, string) {
	switch {
	case !a.quotes(&f):
		return f, s, repairQuote
	case commands(plain(f.Statement)) && a.e.origin(plain(f.Statement)) != ours, a.e.dictated(plain(f.Statement)):
		return f, s, repairInstruction
	case fileList(f):
		return f, s, repairFileList
	case !a.e.fetches && bareURL(f.Statement):
		return f, s, repairURL
	case stray && !a.e.cites(f.Statement):
		return f, s, repairHeading
	}
	f = a.assume(f)
	if s == Findings && f.AsOf == "" && a.date != "" && timeBound.MatchString(f.Statement) {
		f.AsOf = a.date
		a.repairs[repairDated]++
	}
	return f, s, ""
}

// quotes reports whether what a line quotes was said, and takes the marks off what it quotes in other words.
func (a *adoption) quotes(f *Fact) bool {
	s, changed, ok := a.e.own(f.Statement)
	if ok && changed {
		a.repairs[repairUnquoted]++
		*f = withStatement(*f, s)
	}
	return ok
}

// withStatement is f with other words, its tags as they were.
func withStatement(f Fact, s string) Fact {
	g := NewFact(f.Key, s)
	if g.AsOf == "" {
		g.AsOf = f.AsOf
	}
	if g.Confidence == Verified {
		g.Confidence = f.Confidence
	}
	return g
}

// assume marks a line that cites nothing.
func (a *adoption) assume(f Fact) Fact {
	if f.Confidence != Assumed && !a.e.cites(f.Statement) {
		f.Confidence = Assumed
		a.repairs[repairAssumed]++
	}
	return f
}

var (
	noteMark  = regexp.MustCompile(` (?:—|–|--|-) |: | \(`)
	codeMarks = strings.NewReplacer("`", "", "**", "")
)

// deliverable takes a file that was shipped, written, or named by the user or the agent.
func (a *adoption) deliverable(f Fact) (Fact, Section, string) {
	path, note := a.path(f.Path()), noteOf(f)
	if path == "" {
		s := codeMarks.Replace(f.Statement)
		first, rest := s, ""
		if m := noteMark.FindStringIndex(s); m != nil {
			first, rest = s[:m[0]], s[m[1]:]
		}
		if path, note = a.path(strings.TrimSpace(first)), rest; path == "" {
			for _, p := range pathsIn(head(s, 1024)) {
				if path = a.path(p); path != "" {
					note = ""
					break
				}
			}
		}
		if path == "" {
			return a.noFile(f, strings.TrimSpace(first))
		}
	}
	note = gist(note, 200)
	if _, found := a.e.misquoted(note); found || commands(note) && a.e.origin(note) != ours {
		note = ""
	}
	for _, known := range a.d.Facts[Deliverables] {
		if known.Path() == path {
			a.seen[topicOf(Deliverables, known.Key)] = true
			if note == "" || known.Statement != path {
				return known, Deliverables, "" // the note that stands is kept
			}
		}
	}
	return Deliverable(path, note), Deliverables, ""
}

var noFileName = regexp.MustCompile(`^(?:https?://\S+|[0-9a-f]{7,40}|(?i:(?:pr|mr|pull request|merge request|issue|commit|release|tag)\s+\S+)|v?\d+\.\d+\S*)$`)

// noFile takes a deliverable that is no file: a request to merge, a commit, a release that the record names is a
// finding; a file that nobody wrote or named is nothing.
func (a *adoption) noFile(f Fact, first string) (Fact, Section, string) {
	name := first
	if i := strings.LastIndexAny(first, " \t"); i >= 0 {
		name = first[i+1:]
	}
	if !noFileName.MatchString(first) || len(name) < 2 || !a.e.has(folded(name)) {
		return f, Deliverables, repairPath
	}
	a.repairs[repairPath]++
	f, to, kind := a.finding(f, Findings, false)
	return f, to, kind
}

// path is a proposed path as it stands in the record, "" if it does not: one that was written or delivered, by its
// whole or by an end of it that fits no other; else one that the user or the agent names.
func (a *adoption) path(p string) string {
	if p == "" || len(p) > 1024 || strings.Contains(p, "\n") {
		return ""
	}
	if slices.Contains(a.paths, p) {
		return p
	}
	found := ""
	for _, known := range a.paths {
		if strings.HasSuffix(known, "/"+p) || strings.HasSuffix(known, `\`+p) {
			if found != "" && found != known {
				found = ""
				break
			}
			found = known
		}
	}
	if found != "" {
		return found
	}
	if strings.ContainsAny(p, "./\\") && !strings.Contains(p, "://") && a.e.named(folded(p)) {
		return p
	}
	return ""
}

var digits = regexp.MustCompile(`[0-9]+(?:[.,][0-9]+)*`)

// identifier finds what a statement can cite besides passages: paths, names of code, numbers.
var identifier = regexp.MustCompile(`[\p{L}\p{N}_][\p{L}\p{N}_./\\:@#%$-]*[\p{L}\p{N}_]`)

// maxIdentifiers bounds how many of one statement are looked for.
const maxIdentifiers = 128

// cites reports whether a statement cites the span or the digest before: a passage or a quotation that stands there,
// names of its own (paths, identifiers, long numbers) of which at least half are known, or most of its words in one
// place. A short number proves nothing: every one of them stands somewhere in a long span.
func (e *evidence) cites(statement string) bool {
	s := folded(statement)
	if covered(s, marks(s), e.has) > 0 {
		return true
	}
	for _, q := range quotations(statement) {
		if f := folded(q); len(f) >= minQuotation && e.has(f) {
			return true
		}
	}
	names, known := 0, 0
	for _, id := range identifier.FindAllString(statement, maxIdentifiers) {
		if id[0] < utf8.RuneSelf {
			id = strings.TrimRightFunc(id, particle)
		}
		if len(id) < minName || !name(id) || len(strings.Trim(id, "0123456789.,:-")) == 0 && len(id) < minNumber {
			continue
		}
		names++
		if e.word(folded(id)) {
			known++
		}
	}
	if known > 0 && known*2 >= names {
		return true
	}
	return e.near(statement, 600)
}

// particle reports whether a letter is of a script that joins its particles to a name in Latin letters.
func particle(r rune) bool {
	return unicode.In(r, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// The lengths in bytes from which a name and a number can be cited.
const (
	minName   = 4
	minNumber = 6
)

// name reports whether a word is a path, a name of code or a number of two digits.
func name(id string) bool {
	if strings.ContainsAny(id, `_./\:@#0123456789`) {
		return len(id) >= 2
	}
	rest := id[1:]
	return len(id) >= 3 && strings.ToLower(rest) != rest && strings.ToUpper(id) != id
}

// plain is a statement without its quotations and without an error text: what the writer says.
func plain(statement string) string {
	if m := errorText.FindStringIndex(statement); m != nil {
		statement = statement[:m[0]]
	}
	return quoted.ReplaceAllString(statement, "")
}

var (
	timeBound = regexp.MustCompile(`(?i)\b(?:currently|at the moment|right now|as of now|as of today|today|yesterday|this week|so far|latest|newest|most recent|in progress|pending|still (?:failing|fails|running|open|broken|missing|waiting)|not yet|status(?: is|:)|is (?:down|up and running|green|red)|\d+ (?:open|failing|failed|passing|pending|remaining)|up to date|working tree is|(?:tests?|builds?|suite|pipeline|ci)\b[^.;\n]{0,24}\b(?:pass(?:es|ing)?|fails?|failing|green|red|broken))\b` +
		`|(?:^|[^\p{L}])(?:atualmente|no momen[t]o|hoje|últim[oa]s?|por enquanto|actualmente|ahora mismo|hoy|actuellement|en ce moment|aujourd.hui|derzeit|aktuell|momentan|heute|zurzeit|сейчас|сегодня|последн\p{L}+)(?:[^\p{L}]|$)` +
		`|目前|现在|現在|当前|當前|最新|今天|今日|現時点|いま|현재|오늘|최신`)
	anyPath    = regexp.MustCompile(`[^\s,;、，]*[/\\][^\s,;、，]*|[\p{L}\p{N}_.-]+\.[A-Za-z][A-Za-z0-9]{0,7}\b`)
	aboutFiles = regexp.MustCompile(`(?i)\b(?:files?|paths?|read|viewed|looked|look|at|opened|examined|inspected|reviewed|checked|seen|scanned|listed|visited|explored|and|also|the|these|those|following|list|of|in|i|we|agent|have|has|had|been|were|was|source|sources|including|lines?|whole|arquivos?|lidos?|foram|archivos?|leídos?|fichiers?|lus?|gelesen\w*|dateien?|e|y|et|und|os|los|les|die)\b|已|读取?|讀取?|查看|过|過|了|的|文件|檔案|和|与|ファイル|読みました|読んだ|読み込んだ|を|と`)
	readWords  = regexp.MustCompile(`(?i)\b(?:read|viewed|looked at|opened|examined|inspected|reviewed|lidos?|leídos?|gelesen)\b|读|讀|読`)
	anyURL     = regexp.MustCompile(`(?i)\b(?:https?|ftp)://[^\s)>\]"'` + "`" + `]+|\bwww\.[^\s)>\]"'` + "`" + `]+`)
	aboutURL   = regexp.MustCompile(`(?i)\b(?:see|also|at|the|link|links?|url|docs?|documentation|page|source|reference|more|info|details|here|website|site|found|available|is|in|on|from|for|a|an|veja|ver|siehe|voir)\b|参见|详见|参照|見る`)
)

func isLetter(r rune) bool { return unicode.IsLetter(r) }

// fileList reports whether a line is nothing but files that were read. One path under a topic is a handle; several,
// or one that "was read", earn nothing.
func fileList(f Fact) bool {
	if anyURL.MatchString(f.Statement) {
		return false
	}
	paths := len(anyPath.FindAllString(f.Statement, 3))
	if paths == 0 {
		return false
	}
	rest := aboutFiles.ReplaceAllString(anyPath.ReplaceAllString(f.Statement, " "), " ")
	if unended(strings.ReplaceAll(rest, "`", "")) != "" && strings.ContainsFunc(rest, isLetter) {
		return false
	}
	return paths > 1 || readWords.MatchString(f.Statement) || strings.Contains(f.Key, "read")
}

// bareURL reports whether a line says little but an address.
func bareURL(s string) bool {
	if !anyURL.MatchString(s) {
		return false
	}
	rest := folded(aboutURL.ReplaceAllString(anyURL.ReplaceAllString(s, " "), " "))
	weight := 0
	for _, m := range marks(rest) {
		weight += m.weight
	}
	return weight < passageWeight
}

// mayState reports whether a proposed field of Current state may stand: no order out of what was read does, and no
// goal that only stands there.
func (a *adoption) mayState(field, s string) bool {
	switch field {
	case "Next":
		return !a.e.borrowed(s) && !a.e.copied(s)
	case "Goal":
		return !a.e.borrowed(s) && !a.e.copied(s) && a.e.origin(s) != read
	}
	return !(commands(s) && a.e.origin(s) == read) && !a.e.poses(s) && !a.e.dictated(s)
}
