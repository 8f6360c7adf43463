// Package mcp serves view_tool_call to agents over the Model Context Protocol: by streamable HTTP, where a gateway mounts
// [Server.Handler] at /mcp, and over stdin and stdout ([Server.ServeStdio], [Remote.ServeStdio]). It is how an agent that
// cannot be changed gets back what a form left out: the person registers one server, and the model calls the tool under
// whatever name the client gives it (wire.md §4.4, DESIGN §7).
//
// There is one tool. Its id is a handle, <task>/<call>; a bare call id where no other task of the caller's tenants has
// the same; or request:#n, the n-th text that the user wrote, with a task before it where there are several. Ranges and
// patterns are pkg/recall's. An answer is bounded, since clients cut large ones where they like, and says how to read on.
//
// Laws:
//
//  1. Nobody reads beyond its [Scope]: what lies outside is answered as if it were not there.
//  2. Everything that goes wrong is a result of the tool, in a sentence that tells the model what to do next; an error
//     of the protocol is only what no model could mend.
//  3. Every answer that shows a call opens with [toolrule.RecallMark], by which minters leave it alone, whatever the
//     client calls the tool (field-failures K1).
//  4. The pages of an answer, put together, are the whole of it, byte for byte.
package mcp
