package bus_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/bus/bustest"
	"github.com/ullage/ullage/pkg/record"
)

// appendForever is the second process: it appends to four tasks in turn and says what was acknowledged.
func appendForever(dir string) {
	b, err := bus.Open(context.Background(), bus.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	last := map[string]uint64{}
	for i := 0; ; i++ {
		task := fmt.Sprintf("t%d", i%4)
		body, hash := frame(task, i)
		pos, err := b.Append(context.Background(), record.Key{Tenant: "acme", Task: task}, body, hash, last[task])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		last[task] = pos.Seq
		fmt.Println("acknowledged", task, pos.Seq, hash)
	}
}

// A process killed in the middle of appends loses nothing that was acknowledged, and gives up its directory.
func TestKilledWriterLosesNothing(t *testing.T) {
	for round := range 2 {
		dir := t.TempDir()
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "BUS_TEST_APPEND_IN="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		guard := time.AfterFunc(time.Minute, func() { child.Process.Kill() })
		said := map[string]string{} // task/seq: hash
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			f := strings.Fields(lines.Text())
			if len(f) != 4 || f[0] != "acknowledged" {
				t.Fatalf("the other process says: %s", lines.Text())
			}
			said[f[1]+" "+f[2]] = f[3]
			if n == 40 {
				if _, err := bus.Open(t.Context(), bus.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d uses it", child.Process.Pid)) {
					t.Errorf("a directory in another process's use: %v", err)
				}
			}
			if n == 100+37*round {
				child.Process.Kill()
			}
		}
		child.Wait()
		guard.Stop()

		b := bustest.OpenDir(t, dir)
		found := 0
		for i := range 4 {
			msgs, err := b.Read(t.Context(), record.Key{Tenant: "acme", Task: fmt.Sprintf("t%d", i)}, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range msgs {
				at := fmt.Sprintf("%s %d", m.Key.Task, m.Pos.Seq)
				if hash, ok := said[at]; ok {
					found++
					if m.Hash.String() != hash {
						t.Errorf("frame %s is another one than was acknowledged", at)
					}
				}
			}
		}
		if found != len(said) {
			t.Errorf("%d frames were acknowledged and %d are there", len(said), found)
		}
	}
}
