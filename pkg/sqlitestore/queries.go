package sqlitestore

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed queries.sql
var queriesSQL string

// queries takes queries.sql apart: a statement under each "-- name:" line.
func queries(text string) map[string]string {
	out := map[string]string{}
	for _, section := range strings.Split(text, "-- name: ")[1:] {
		name, sql, _ := strings.Cut(section, "\n")
		if _, twice := out[name]; twice {
			panic(fmt.Sprintf("queries.sql holds %q twice", name))
		}
		out[strings.TrimSpace(name)] = strings.TrimSpace(sql)
	}
	return out
}
