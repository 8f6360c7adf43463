package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ullage/ullage/internal/realdata"
)

func TestScratch(t *testing.T) {
	dir := realdata.Dir(t)
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		f, err := ReadFile(p)
		if err != nil {
			fmt.Println(rel, "ERR", err)
			return nil
		}
		fmt.Printf("%s %s tasks=%d %+v\n", rel, f.Source, len(f.Tasks), f.Repairs)
		for i, tk := range f.Tasks {
			if i > 3 {
				break
			}
			ts, us := 0, 0
			for _, b := range tk.Boundaries {
				if b.TurnStart {
					ts++
				}
				if b.Usage != nil {
					us++
				}
			}
			fmt.Printf("   %s %s %s msgs=%d bounds=%d steps=%d turns=%d usage=%d parent=%s/%s legal=%v %v\n     %+v\n", tk.ID, tk.Format, tk.Model, len(tk.Messages), len(tk.Boundaries), tk.Steps(), ts, us, tk.Parent, tk.Call, legal(tk.Format, tk.Messages), tk.Notes, tk.Repairs)
		}
		return nil
	})
}
