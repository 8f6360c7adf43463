package main

// benchCmd holds the measurements.
type benchCmd struct {
	Load   benchLoadCmd   `cmd:"" help:"Drive many synthetic agents at once through a running gateway over HTTP, and check every view and every mint."`
	Engine benchEngineCmd `cmd:"" help:"Time one step on a long history against a bare JSON scan and SHA-256 pass, and a grown step against that."`
	Replay benchReplayCmd `cmd:"" help:"Replay transcripts in several windows and print what the plan did as tables."`
}
