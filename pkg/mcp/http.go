package mcp

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCall bounds the body of a request: the arguments of a call are small.
const maxCall = 1 << 20

// Tenants says which tenants a request's caller is, or, as an error that a person can act on, that it is none.
type Tenants func(*http.Request) ([]string, error)

// Handler serves streamable HTTP, to be mounted at /mcp. It keeps no session: any gateway answers any request. The header
// [TaskHeader] binds a caller to one task. Requests that a browser makes for another site are refused.
func (s *Server) Handler(tenants Tenants) http.Handler {
	streamable := sdk.NewStreamableHTTPHandler(
		func(r *http.Request) *sdk.Server {
			scope, _ := r.Context().Value(scopeKey{}).(Scope)
			return s.server(scope)
		},
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxCall, PropagateRequestCancellation: true, Logger: quiet(s.Log)},
	)
	scoped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names, err := tenants(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		scope := Scope{Tenants: names, Task: r.Header.Get(TaskHeader)}
		streamable.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), scopeKey{}, scope)))
	})
	return http.NewCrossOriginProtection().Handler(scoped)
}

// scopeKey is where a request's context holds its scope.
type scopeKey struct{}
