package sdkloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// Responses runs the loop over Responses: the history on the wire and encrypted reasoning, or, with Stored, the history
// at the provider. baseURL is what OPENAI_BASE_URL would be, /v1 included.
func Responses(ctx context.Context, baseURL, key string, o Options) (Result, error) {
	o = o.defaults("gpt-5.4")
	c := client(baseURL, key, o)
	p := responses.ResponseNewParams{
		Model: o.Model, Instructions: openai.String(o.System), MaxOutputTokens: openai.Int(o.MaxTokens), Store: openai.Bool(o.Stored),
		Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortMedium},
	}
	if !o.Stored {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	for _, t := range tools() {
		p.Tools = append(p.Tools, responses.ToolParamOfFunction(t.name, t.schema(), false))
	}
	var r Result
	var input responses.ResponseInputParam
	for turn := range o.Turns {
		input = append(input, responses.ResponseInputItemParamOfMessage(o.request(turn), responses.EasyInputMessageRoleUser))
		for {
			p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
			m, err := respond(ctx, &c, p, o.Stream)
			if err != nil {
				return r, fmt.Errorf("responses, step %d: %w", r.Steps+1, err)
			}
			if err := r.step(o, string(m.Status), m.OutputText(), m.Usage.InputTokens, m.Usage.InputTokensDetails.CachedTokens, m.Usage.OutputTokens); err != nil {
				return r, err
			}
			if o.Stored {
				p.PreviousResponseID = openai.String(m.ID)
				input = nil
			}
			var results []responses.ResponseInputItemUnionParam
			for _, it := range m.Output {
				var in responses.ResponseInputItemUnionParam
				switch it.Type {
				case "message":
					v := it.AsMessage().ToParam()
					in.OfOutputMessage = &v
				case "reasoning":
					v := it.AsReasoning().ToParam()
					in.OfReasoning = &v
				case "function_call":
					call := it.AsFunctionCall()
					v := call.ToParam()
					in.OfFunctionCall = &v
					out := responses.ResponseInputItemParamOfFunctionCallOutput(r.work(o, call.CallID, call.Name, call.Arguments))
					out.OfFunctionCallOutput.CallID = openai.String(call.CallID)
					results = append(results, out)
				default:
					return r, fmt.Errorf("responses, step %d: an item of type %q", r.Steps, it.Type)
				}
				if !o.Stored {
					input = append(input, in)
				}
			}
			if len(results) == 0 {
				break
			}
			input = append(input, results...)
		}
	}
	return r, nil
}

func respond(ctx context.Context, c *openai.Client, p responses.ResponseNewParams, stream bool) (*responses.Response, error) {
	if !stream {
		return c.Responses.New(ctx, p)
	}
	s := c.Responses.NewStreaming(ctx, p)
	defer func() { _ = s.Close() }() // what it has to say, Err has said
	var done *responses.Response
	for s.Next() {
		switch e := s.Current(); e.Type {
		case "response.completed", "response.incomplete":
			done = &e.Response
		case "response.failed":
			return nil, fmt.Errorf("the response failed: %s", e.Response.Error.Message)
		case "error":
			return nil, fmt.Errorf("an error in the stream: %s", e.Message)
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if done == nil {
		return nil, errors.New("the stream ended before response.completed")
	}
	return done, nil
}
