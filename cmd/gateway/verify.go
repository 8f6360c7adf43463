package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ullage/ullage/internal/cli"
	"github.com/ullage/ullage/pkg/sqlitestore"
	"github.com/ullage/ullage/pkg/store"
)

type verifyCmd struct {
	data `embed:""`
}

// Help is shown below the usage of verify.
func (verifyCmd) Help() string {
	return `Reads a node's whole copy of the record: SQLite's own structure, the digest of every content, the hash of every
entry and the chain of every task. The gateway that holds the directory must be stopped. A copy with faults can be
deleted (node.db, node.db-wal, node.db-shm): it is built anew from the log at the next start.
Exit status: 0 no fault; 1 an error; 2 faults, each said in a line.`
}

// Run verifies.
func (c *verifyCmd) Run(ctx contextArg) error { return verify(ctx, os.Stdout, c.Data) }

func verify(ctx context.Context, w io.Writer, dir string) (err error) {
	path := filepath.Join(dir, "node.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("verify: there is no node.db in %s; name the data directory of a gateway with --data", dir)
	}
	s, err := sqlitestore.Open(path)
	if err != nil {
		return cannotVerify(w, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	faults, err := s.Verify(ctx)
	if err != nil {
		return cannotVerify(w, err)
	}
	if len(faults) == 0 {
		fmt.Fprintf(w, "%s: no fault\n", path)
		return nil
	}
	for _, f := range faults {
		fmt.Fprintln(w, f)
	}
	return &cli.ExitError{Code: 2, Err: fmt.Errorf("verify: %s in %s", plural(len(faults), "fault"), path)}
}

// cannotVerify tells damage so deep that the copy could not be read through, which is a fault, from an error.
func cannotVerify(w io.Writer, err error) error {
	if !errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("verify: %w", err)
	}
	fmt.Fprintln(w, err)
	return &cli.ExitError{Code: 2, Err: errors.New("verify: the copy is damaged; it could not be read through")}
}

// different says that a view made again is not what went out.
func different(step int) error {
	return &cli.ExitError{Code: 2, Err: fmt.Errorf("view: made again, the view of step %d has other bytes than the one that went out; 'gateway verify' tells whether the record is damaged", step)}
}
