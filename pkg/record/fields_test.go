package record_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/record"
)

// fill sets every field that v reaches to a value that is not zero.
func fill(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), path+"[0]")
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), path)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(3)
	default:
		t.Fatalf("%s: a %s is not filled by this test", path, v.Kind())
	}
}

// A field that a shared type gains must be encoded too: what is lost here would be lost on every other node.
func TestNoFieldIsLost(t *testing.T) {
	for _, body := range []any{&record.Frame{}, &record.Finished{}, &record.Minted{}, &record.Ready{}, &record.Erase{}} {
		fill(t, reflect.ValueOf(body).Elem(), reflect.TypeOf(body).Elem().Name())
		switch v := body.(type) { // what excludes one another
		case *record.Frame:
			v.Items = []record.Item{{From: 1, Count: 2}, {Blob: &record.Ref{Hash: engine.Sum([]byte("x")), Len: 1}}, {Raw: []byte("x")}}
		case *record.Finished:
			v.InputRef, v.Output = nil, nil
		}
		b, err := record.Encode(body)
		if err != nil {
			t.Errorf("%T: %v", body, err)
			continue
		}
		got, err := record.Decode(b)
		if err != nil {
			t.Errorf("%T: %v", body, err)
			continue
		}
		if d := cmp.Diff(body, got); d != "" {
			t.Errorf("%T (-want +got):\n%s", body, d)
		}
	}
}
