package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID is what PRAGMA application_id says of a file of ours: "ULG1".
const applicationID = 0x554C4731

// migrate brings a file to the newest version that this program knows: the n-th file of migrations makes version n.
// Each runs in a transaction of its own, so that a crash leaves the version before or the version after.
func migrate(ctx context.Context, conn *sql.Conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return err
	}
	var app, have, tables int
	for _, q := range []struct {
		sql string
		to  *int
	}{
		{"PRAGMA application_id", &app}, {"PRAGMA user_version", &have}, {"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := conn.QueryRowContext(ctx, q.sql).Scan(q.to); err != nil {
			return err
		}
	}
	switch {
	case app != applicationID && (app != 0 || tables != 0):
		return fmt.Errorf("it is a database of another program (application id %#x); choose another data directory", app)
	case have > len(files):
		return fmt.Errorf("it has schema version %d and this program knows %d; use the newer program, or delete the file to have it built anew from the log", have, len(files))
	}
	for n := have; n < len(files); n++ {
		script, err := migrations.ReadFile(files[n])
		if err != nil {
			return err
		}
		_, err = conn.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA user_version = %d;\nCOMMIT;", script, n+1))
		if err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK") // best effort: the error below is the one to tell
			return fmt.Errorf("migration %s: %w", files[n], err)
		}
	}
	return nil
}
