package sdkloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// client is an OpenAI client for a base URL with /v1 at its end, as OPENAI_BASE_URL would be.
func client(baseURL, key string, o Options) openai.Client {
	opts := []option.RequestOption{option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(o.Retries)}
	for _, h := range o.headers() {
		opts = append(opts, option.WithHeader(h[0], h[1]))
	}
	if o.HTTP != nil {
		opts = append(opts, option.WithHTTPClient(o.HTTP))
	}
	return openai.NewClient(opts...)
}

// Chat runs the loop over Chat Completions. baseURL is what OPENAI_BASE_URL would be, /v1 included.
func Chat(ctx context.Context, baseURL, key string, o Options) (Result, error) {
	o = o.defaults("gpt-5.4")
	c := client(baseURL, key, o)
	p := openai.ChatCompletionNewParams{
		Model: o.Model, MaxCompletionTokens: openai.Int(o.MaxTokens),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(o.System)},
	}
	if o.Stream {
		p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	}
	for _, t := range tools() {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: t.name, Description: openai.String(t.says), Parameters: t.schema()}))
	}
	var r Result
	for turn := range o.Turns {
		p.Messages = append(p.Messages, openai.UserMessage(o.request(turn)))
		for {
			m, err := complete(ctx, &c, p, o.Stream)
			if err != nil {
				return r, fmt.Errorf("chat, step %d: %w", r.Steps+1, err)
			}
			if len(m.Choices) == 0 {
				return r, fmt.Errorf("chat, step %d: an answer without choices", r.Steps+1)
			}
			choice := m.Choices[0]
			if err := r.step(o, choice.FinishReason, choice.Message.Content, m.Usage.PromptTokens, m.Usage.PromptTokensDetails.CachedTokens, m.Usage.CompletionTokens); err != nil {
				return r, err
			}
			p.Messages = append(p.Messages, choice.Message.ToParam())
			if len(choice.Message.ToolCalls) == 0 {
				break
			}
			for _, call := range choice.Message.ToolCalls {
				p.Messages = append(p.Messages, openai.ToolMessage(r.work(o, call.ID, call.Function.Name, call.Function.Arguments), call.ID))
			}
		}
	}
	return r, nil
}

func complete(ctx context.Context, c *openai.Client, p openai.ChatCompletionNewParams, stream bool) (*openai.ChatCompletion, error) {
	if !stream {
		return c.Chat.Completions.New(ctx, p)
	}
	s := c.Chat.Completions.NewStreaming(ctx, p)
	defer func() { _ = s.Close() }() // what it has to say, Err has said
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return nil, errors.New("a chunk does not fit those before it")
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(acc.Choices) == 0 || acc.Choices[0].FinishReason == "" {
		return nil, errors.New("the stream ended before its last chunk")
	}
	return &acc.ChatCompletion, nil
}
