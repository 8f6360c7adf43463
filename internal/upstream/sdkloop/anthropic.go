package sdkloop

import (
	"context"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// Anthropic runs the loop over Messages. baseURL is what ANTHROPIC_BASE_URL would be.
func Anthropic(ctx context.Context, baseURL, key string, o Options) (Result, error) {
	o = o.defaults("claude-opus-5")
	opts := []option.RequestOption{option.WithBaseURL(baseURL), option.WithAPIKey(key), option.WithMaxRetries(o.Retries)}
	for _, h := range o.headers() {
		opts = append(opts, option.WithHeader(h[0], h[1]))
	}
	for _, b := range o.Betas {
		opts = append(opts, option.WithHeaderAdd("anthropic-beta", b))
	}
	if o.HTTP != nil {
		opts = append(opts, option.WithHTTPClient(o.HTTP))
	}
	c := anthropic.NewClient(opts...)
	p := anthropic.MessageNewParams{
		Model: o.Model, MaxTokens: o.MaxTokens,
		System: []anthropic.TextBlockParam{{Text: o.System}},
	}
	for _, t := range tools() {
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: t.name, Description: anthropic.String(t.says), InputSchema: anthropic.ToolInputSchemaParam{Properties: t.properties(), Required: t.fields},
		}})
	}
	switch o.Thinking {
	case "adaptive":
		p.Thinking = anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{}}
	case "enabled":
		p.Thinking = anthropic.ThinkingConfigParamOfEnabled(2048)
	}
	if o.Markers {
		p.System[0].CacheControl = anthropic.NewCacheControlEphemeralParam()
		p.Tools[len(p.Tools)-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	var r Result
	for turn := range o.Turns {
		p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(o.request(turn))))
		for {
			if o.Markers {
				remark(p.Messages)
			}
			if o.Count && r.Steps%10 == 0 {
				n, err := count(ctx, &c, p)
				if err != nil {
					return r, fmt.Errorf("count_tokens before step %d: %w", r.Steps+1, err)
				}
				r.Counted = append(r.Counted, n)
			}
			m, err := generate(ctx, &c, p, o.Stream)
			if err != nil {
				return r, fmt.Errorf("messages, step %d: %w", r.Steps+1, err)
			}
			text := ""
			for _, b := range m.Content {
				text += b.Text
			}
			u := m.Usage
			if err := r.step(o, string(m.StopReason), text, u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens); err != nil {
				return r, err
			}
			p.Messages = append(p.Messages, m.ToParam())
			var results []anthropic.ContentBlockParamUnion
			for _, b := range m.Content {
				if b.Type == "tool_use" {
					results = append(results, anthropic.NewToolResultBlock(b.ID, r.work(o, b.ID, b.Name, string(b.Input)), false))
				}
			}
			if len(results) == 0 {
				break
			}
			p.Messages = append(p.Messages, anthropic.NewUserMessage(results...))
		}
	}
	return r, nil
}

func generate(ctx context.Context, c *anthropic.Client, p anthropic.MessageNewParams, stream bool) (*anthropic.Message, error) {
	if !stream {
		return c.Messages.New(ctx, p)
	}
	s := c.Messages.NewStreaming(ctx, p)
	defer func() { _ = s.Close() }() // what it has to say, Err has said
	var m anthropic.Message
	done := false
	for s.Next() {
		e := s.Current()
		if err := m.Accumulate(e); err != nil {
			return nil, err
		}
		done = done || e.Type == "message_stop"
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if !done {
		return nil, fmt.Errorf("the stream ended before message_stop, with %d blocks", len(m.Content))
	}
	return &m, nil
}

func count(ctx context.Context, c *anthropic.Client, p anthropic.MessageNewParams) (int64, error) {
	q := anthropic.MessageCountTokensParams{
		Model: p.Model, Messages: p.Messages, Thinking: p.Thinking,
		System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System},
	}
	for _, t := range p.Tools {
		q.Tools = append(q.Tools, anthropic.MessageCountTokensToolUnionParam{OfTool: t.OfTool})
	}
	n, err := c.Messages.CountTokens(ctx, q)
	if err != nil {
		return 0, err
	}
	return n.InputTokens, nil
}

// remark moves the marker onto the last block that the user sent.
func remark(messages []anthropic.MessageParam) {
	for i := range messages {
		for _, b := range messages[i].Content {
			if m := b.GetCacheControl(); m != nil {
				*m = anthropic.CacheControlEphemeralParam{}
			}
		}
	}
	last := messages[len(messages)-1].Content
	if m := last[len(last)-1].GetCacheControl(); m != nil {
		*m = anthropic.NewCacheControlEphemeralParam()
	}
}
