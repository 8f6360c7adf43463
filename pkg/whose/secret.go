package whose

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SecretFile is the file of the data directory that holds the secret of [Tenant].
const SecretFile = "tenant.secret"

const secretBytes = 32

// LoadSecret reads the secret of a data directory, and makes it at the first time: 32 random bytes in hex, readable by
// the owner alone. Who loses it loses no record, but callers get new namespaces and do not find their tasks. All
// gateways of a cluster need the same one.
func LoadSecret(dir string) ([]byte, error) {
	file := filepath.Join(dir, SecretFile)
	secret, err := readSecret(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	secret = make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make the secret of tenants: %w", err)
	}
	if err := writeSecret(dir, file, secret); err != nil {
		return nil, fmt.Errorf("make the secret of tenants: %w", err)
	}
	return readSecret(file) // another process may have been first
}

// ParseSecret reads a secret as it stands in the file, or in an operator's configuration.
func ParseSecret(text string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) < secretBytes {
		return nil, fmt.Errorf("the secret of tenants must be at least %d bytes in hex", secretBytes)
	}
	return b, nil
}

func readSecret(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the secret of tenants: %w", err)
	}
	secret, err := ParseSecret(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore it from a backup, or delete it if callers may lose sight of their tasks", file, err)
	}
	return secret, nil
}

// writeSecret puts the file into place whole, and leaves one that is there already.
func writeSecret(dir, file string, secret []byte) error {
	t, err := os.CreateTemp(dir, SecretFile+".*") // readable by the owner alone
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(t.Name()) }() // its other name is the file
	_, err = t.WriteString(hex.EncodeToString(secret) + "\n")
	if err == nil {
		err = t.Sync()
	}
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Link(t.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
