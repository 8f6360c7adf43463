// Package bus carries the log: a few synced JetStream streams that are the only thing the replicas share (DESIGN §5).
// It carries bytes. It knows keys, places in a stream and hashes, and nothing of what the bytes mean or of the
// stores that keep a copy.
//
// The same code serves both forms. Embedded (no URL): a NATS server inside the process that opens no port, with its
// files under one data directory. Cluster: a NATS URL.
//
//	rec.<p>.<tenant>.<task>.m   frames, one chain for each task: [Bus.Append]
//	rec.<p>.<tenant>.<task>.t   tool-finished events: [Bus.Event]
//	form.<p>.<tenant>.<task>    what minters and summarisers made available: [Bus.Form]
//	ctl.<p>.<tenant>.<task>     orders of erasure: [Bus.Control]
//	foldq.<p>.<tenant>.<task>.<kind>   folds that nobody waits for, one for each task and kind: [Bus.QueueFold]
//
// p is one of 64 partitions for life; REC_k and FORM_k listen on the partitions p with p mod K = k.
//
// # Guarantees
//
//   - Acknowledged means on disk: [Open] refuses a server that syncs less often than always.
//   - Of appends with one expectation at most one lands; each writer learns which, also through a lost answer.
//   - Appending the same frame again is success, at the place where it landed.
//   - Nothing acknowledged is discarded when a stream is full: the next append is refused.
//   - Events, forms and controls arrive at least once.
//   - A minter's message is acknowledged after its handler returned, never before; one that cannot be minted ends
//     as a dead letter and holds up nothing.
//   - A queued fold is done by some worker, gives way to a newer one of its task and kind, or ends as a dead letter
//     that holds it; no worker's death loses it.
//   - A log that went backwards, or is another log, is an error with a sentence; it is never followed in silence.
package bus
