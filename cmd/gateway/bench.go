package main

// benchCmd holds the measurements.
type benchCmd struct {
	Load benchLoadCmd `cmd:"" help:"Drive many synthetic agents at once through a running gateway over HTTP, and check every view and every mint."`
}
