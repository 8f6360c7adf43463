package whose_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ullage/ullage/pkg/bus"
	"github.com/ullage/ullage/pkg/whose"
)

func TestTenant(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	tenant := func(host string, lines ...string) string {
		t.Helper()
		name := whose.Tenant(secret, header(lines...), host)
		if err := bus.ValidToken("tenant", name); err != nil || strings.Contains(name, ":") {
			t.Errorf("%q: %v", name, err)
		}
		return name
	}
	key := tenant("api.anthropic.com", "X-Api-Key: sk-1")
	for what, same := range map[string]string{
		"as a bearer":           tenant("api.anthropic.com", "Authorization: Bearer sk-1"),
		"as a bearer, in small": tenant("api.anthropic.com", "Authorization: bearer  sk-1"),
		"with the usual port":   tenant("API.Anthropic.com:443", "X-Api-Key: sk-1"),
		"with other headers":    tenant("api.anthropic.com", "X-Api-Key: sk-1", "Thread-Id: t", "X-Ullage-Task: mine"),
	} {
		if same != key {
			t.Errorf("the key %s is another tenant", what)
		}
	}
	seen := map[string]string{key: "the key"}
	for what, other := range map[string]string{
		"another key":            tenant("api.anthropic.com", "X-Api-Key: sk-2"),
		"another host":           tenant("api.openai.com", "X-Api-Key: sk-1"),
		"another port":           tenant("api.anthropic.com:8443", "X-Api-Key: sk-1"),
		"no key":                 tenant("api.anthropic.com"),
		"no key, another host":   tenant("localhost:8000"),
		"another secret":         whose.Tenant([]byte("x"), header("X-Api-Key: sk-1"), "api.anthropic.com"),
		"host and key run on":    tenant("api.anthropic.coms", "X-Api-Key: k-1"),
		"a key of another cloud": tenant("api.anthropic.com", "Api-Key: sk-3"),
	} {
		if old, ok := seen[other]; ok {
			t.Errorf("%s is the same tenant as %s", what, old)
		}
		seen[other] = what
		if strings.Contains(other, "sk-") {
			t.Errorf("%s: the key shows in %s", what, other)
		}
	}
	sign := "Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20261201/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature="
	if tenant("bedrock", sign+"1") != tenant("bedrock", sign+"2") {
		t.Error("each signature is another tenant")
	}
}

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	got := make([][]byte, 8)
	for i := range got {
		wg.Go(func() {
			b, err := whose.LoadSecret(dir)
			if err != nil {
				t.Error(err)
			}
			got[i] = b
		})
	}
	wg.Wait()
	for _, b := range got {
		if len(b) != 32 || !bytes.Equal(b, got[0]) {
			t.Fatalf("secrets %x and %x", got[0], b)
		}
	}
	file := filepath.Join(dir, whose.SecretFile)
	if i, err := os.Stat(file); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", i.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := whose.LoadSecret(dir); err == nil || !strings.Contains(err.Error(), "at least 32 bytes in hex") {
		t.Errorf("a damaged secret: %v", err)
	}
	if b, _ := os.ReadFile(file); string(b) != "short" {
		t.Error("a damaged secret was replaced")
	}
	if _, err := whose.LoadSecret(filepath.Join(dir, "none")); err == nil {
		t.Error("no directory, and no error")
	}
}
