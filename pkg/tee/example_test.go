package tee_test

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ullage/ullage/pkg/tee"
	"github.com/ullage/ullage/pkg/wire"
)

// A proxy copies the provider's answer to its client, and reads it off while it goes by.
func Example() {
	fromProvider := strings.NewReader("data: {\"id\":\"chatcmpl-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":90}}\n\ndata: [DONE]\n\n")
	toClient := io.Discard

	t := tee.New(wire.Chat, true)
	t.Encoding("") // the answer's Content-Encoding header
	if _, err := io.Copy(toClient, io.TeeReader(fromProvider, t)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	a := t.Answer()
	fmt.Println(a.ID, a.Usage.Prompt, a.Usage.Output, a.Complete)
	// Output: chatcmpl-1 1200 90 true
}
