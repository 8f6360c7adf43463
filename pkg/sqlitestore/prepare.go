package sqlitestore

import (
	"fmt"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/store"
)

// prepared is an entry made ready on its caller's goroutine, so that the writer neither packs nor hashes.
type prepared struct {
	store.Entry
	body     []byte        // the entry as it is kept: encoded, its contents elsewhere
	contents []record.Part // of a frame its new messages, of an event its input and output
}

func prepare(entries []store.Entry) ([]prepared, int, error) {
	out := make([]prepared, len(entries))
	size := 0
	for i := range entries {
		p := &out[i]
		p.Entry = entries[i]
		if err := p.prepare(); err != nil {
			return nil, 0, err
		}
		size += len(p.body)
		for j := range p.contents {
			size += len(p.contents[j].Stored)
		}
	}
	return out, size, nil
}

func (p *prepared) prepare() error {
	if err := p.Check(); err != nil {
		return err
	}
	enc := p.Encoded
	if enc == nil {
		var err error
		if enc, err = record.Seal(p.Body()); err != nil {
			return fmt.Errorf("apply entry %d of task %s/%s: %w", p.Seq, p.Key.Tenant, p.Key.Task, err)
		}
	}
	if enc.Hash != p.Hash {
		return p.Mismatch(enc.Hash)
	}
	p.body = enc.Outline().Bytes()
	p.contents = append([]record.Part(nil), enc.Parts[:enc.Contents]...)
	i := 0
	fill := func(raw []byte) error {
		c := &p.contents[i]
		i++
		if c.Enc != record.Elsewhere || raw == nil {
			return nil
		}
		filled := record.Pack(raw)
		if filled.Hash != c.Hash {
			return fmt.Errorf("apply entry %d of task %s/%s: content %.8s: %w", p.Seq, p.Key.Tenant, p.Key.Task, c.Hash, store.ErrDamaged)
		}
		*c = filled
		return nil
	}
	if f := p.Frame; f != nil {
		if f.New() != len(p.contents) {
			return fmt.Errorf("apply entry %d of task %s/%s: its encoding is not that of its frame", p.Seq, p.Key.Tenant, p.Key.Task)
		}
		for j := range f.Items {
			if f.Items[j].Count == 0 {
				if err := fill(f.Items[j].Raw); err != nil {
					return err
				}
			}
		}
	}
	if f := p.Finished; f != nil {
		for _, c := range []struct {
			raw []byte
			ref *record.Ref
		}{{f.Input, f.InputRef}, {f.Output, f.OutputRef}} {
			if c.raw == nil && c.ref == nil {
				continue
			}
			if i == len(p.contents) {
				return fmt.Errorf("apply entry %d of task %s/%s: its encoding is not that of its event", p.Seq, p.Key.Tenant, p.Key.Task)
			}
			if err := fill(c.raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKey is the digest under which rows of one check value meet.
func checkKey(c engine.Check) []byte {
	b := append([]byte(nil), c.Input[:]...)
	b = append(b, c.Result[:]...)
	d := engine.Sum(append(b, c.Name...))
	return d[:]
}
