package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ullage/ullage/internal/cli"
)

// progress shows on a terminal how far a long piece of work is. Elsewhere it is silent.
type progress struct {
	width int // 0: not a terminal
	files int
	at    int
	name  string
	steps int
	done  int
	drawn time.Time
}

func newProgress(files int) *progress {
	p := &progress{files: files}
	if w, ok := cli.Terminal(os.Stderr); ok {
		p.width = w
	}
	return p
}

func (p *progress) file(name string, steps int) {
	p.at++
	p.name, p.steps, p.done = filepath.Base(name), steps, 0
	p.draw("", true)
}

func (p *progress) step(task string) {
	p.done++
	p.draw(task, false)
}

func (p *progress) draw(task string, now bool) {
	if p.width == 0 || !now && time.Since(p.drawn) < 100*time.Millisecond {
		return
	}
	p.drawn = time.Now()
	s := fmt.Sprintf("file %d of %d  step %d of %d  %s  %s", p.at, p.files, p.done, p.steps, p.name, task)
	if r := []rune(s); len(r) > p.width-1 {
		s = string(r[:p.width-1])
	}
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s", s)
}

// clear takes the line away, so that other output can stand there.
func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

func (p *progress) end() { p.clear() }
