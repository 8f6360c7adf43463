package engine

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestCanonicalInput(t *testing.T) {
	for _, c := range []struct{ name, in, exact, es6 string }{
		{"white space and order", "{ \"b\" : 1 ,\n\"a\":[ ] }", `{"a":[],"b":1}`, ""},
		{"trap 1: cache_control is data here", `{"cache_control":{"type":"ephemeral"},"a":1}`, `{"a":1,"cache_control":{"type":"ephemeral"}}`, ""},
		{
			"trap 2: numbers", `[1.0,1e3,12345678901234567890,-0,1e-7,1e21,1E400]`,
			`[1.0,1e3,12345678901234567890,-0,1e-7,1e21,1E400]`, `[1,1000,12345678901234567000,0,1e-7,1e+21,null]`,
		},
		{"trap 3: integer-like keys", `{"b":0,"2":0,"10":0}`, `{"10":0,"2":0,"b":0}`, ""},
		{"trap 3: duplicate keys are opaque", `{ "a":1,"a":2}`, `{ "a":1,"a":2}`, ""},
		{"trap 3: duplicate once decoded", `{"a":1,"\u0061":2}`, `{"a":1,"\u0061":2}`, ""},
		{"trap 4: escapes", `"\u003ca\/b\u003e\u2028 \u00e9\n\t\ud83d\ude00"`, "\"<a/b>\u2028 é\\u000a\\u0009😀\"", ""},
		{"trap 5: lone surrogates keep their escape", `["\uD800","\ude00\ud83d"]`, `["\ud800","\ude00\ud83d"]`, ""},
		{"keys by UTF-16", `{"\ufb33":1,"😀":2}`, `{"😀":2,"` + "\ufb33" + `":1}`, ""},
		{"trap 6: no normalisation", "\"e\u0301\"", "\"e\u0301\"", ""},
		{"not JSON", `{"a":`, `{"a":`, ""},
		{"leading zero", `01`, `01`, ""},
	} {
		exact, es6 := CanonicalInput([]byte(c.in))
		if string(exact) != c.exact || string(es6) != c.es6 {
			t.Errorf("%s: CanonicalInput(%s)\n exact %s\n want  %s\n es6   %q\n want  %q", c.name, c.in, exact, c.exact, es6, c.es6)
		}
	}
}

// A canonical form is its own canonical form, and stands for the same value.
func TestCanonicalIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Float64())).Draw(t, "value")
		in, err := json.MarshalIndent(m, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		exact, _ := CanonicalInput(in)
		again, _ := CanonicalInput(exact)
		if string(again) != string(exact) {
			t.Fatalf("canonical form moved: %s, then %s", exact, again)
		}
		plain, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if other, _ := CanonicalInput(plain); string(other) != string(exact) {
			t.Fatalf("two spellings: %s and %s", exact, other)
		}
	})
}

func FuzzCanonicalInput(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u0041",{}]}`, `"\ud800"`, `[`, `{"a":1,"a":2}`, `1e5`, `-`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		exact, _ := CanonicalInput(in)
		if json.Valid(in) && !json.Valid(exact) {
			t.Fatalf("%q became %q", in, exact)
		}
	})
}

func TestHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Coverage
		copy(c[:], rapid.SliceOfN(rapid.Byte(), len(c), len(c)).Draw(t, "coverage"))
		c[0] |= 1
		body := rapid.StringMatching(`[a-z#<>!-]([a-z\n #<>!-]*[a-z])?`).Draw(t, "digest")
		gotC, gotBody, ok := IsHead(" \n" + Head(c, body))
		if !ok || gotC != c || gotBody != body {
			t.Fatalf("IsHead(Head(%v, %q)) = %v, %q, %v", c, body, gotC, gotBody, ok)
		}
	})
	for _, s := range []string{
		"", HeadTitle, HeadTitle + "\n\nsomething", HeadTitle + "\n" + HeadMarker + "12 -->", HeadTitle + "\n" + HeadMarker + " -->",
		"I saw this:\n" + Head(Sum([]byte("x")), "digest"),
	} {
		if _, _, ok := IsHead(s); ok {
			t.Errorf("taken for a head: %q", s)
		}
	}
}
