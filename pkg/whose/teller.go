package whose

import (
	"context"
	"net/http"

	"github.com/ullage/ullage/pkg/record"
	"github.com/ullage/ullage/pkg/wire"
)

// Teller tells whose a request is, for a proxy.
type Teller struct {
	Secret []byte // of [LoadSecret]
	Index  Index
}

// Told is what a proxy needs to know.
type Told struct {
	Whose
	Key record.Key // for a side request the tenant alone
	How string     // "" for a side request
}

// Tell tells whose a request to an upstream's host is.
func (t *Teller) Tell(ctx context.Context, h http.Header, path, upstream string, req *wire.Request) (Told, error) {
	told := Told{Whose: Identify(Request{Header: h, Path: path, Wire: req}), Key: record.Key{Tenant: Tenant(t.Secret, h, upstream)}}
	if told.Side != "" && told.Side != CountTokens {
		return told, nil
	}
	var err error
	told.Key, told.How, err = Match(ctx, t.Index, told.Key.Tenant, told.Whose, req.Messages)
	return told, err
}
