package clustertest

import "testing"

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait(t)
}
