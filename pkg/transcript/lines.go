package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/tidwall/gjson"
)

// maxLine is the longest line that is read; a longer one counts as broken.
const maxLine = 64 << 20

// lines reads a file line by line. What is not JSON is counted and passed over.
type lines struct {
	r      *bufio.Reader
	rep    *Repairs
	queued []gjson.Result // lines that were read to tell the format
	err    error          // of the reader, io.EOF excepted
}

// raw is the next line without its end, nil when there is none. A line over maxLine comes back as an empty one.
func (l *lines) raw() (line []byte, more bool) {
	long := false
	for {
		chunk, err := l.r.ReadSlice('\n')
		if len(line)+len(chunk) > maxLine {
			long, line = true, nil
		}
		if !long {
			line = append(line, chunk...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			l.err = err
			return nil, false
		}
		if long {
			l.rep.BrokenLines++
		}
		return bytes.TrimSpace(line), err == nil || len(line) > 0 || long
	}
}

// next is the next line that is JSON.
func (l *lines) next() (gjson.Result, bool) {
	if len(l.queued) > 0 {
		v := l.queued[0]
		l.queued = l.queued[1:]
		return v, true
	}
	for {
		line, more := l.raw()
		if !more {
			return gjson.Result{}, false
		}
		if v, ok := l.parse(line); ok {
			return v, true
		}
	}
}

// parse reads one line; blank lines are passed over, broken ones counted.
func (l *lines) parse(line []byte) (gjson.Result, bool) {
	if len(line) == 0 {
		return gjson.Result{}, false
	}
	line, changed := cleanText(line)
	if !json.Valid(line) {
		l.rep.BrokenLines++
		return gjson.Result{}, false
	}
	if changed {
		l.rep.BadText++
	}
	return gjson.ParseBytes(line), true
}
