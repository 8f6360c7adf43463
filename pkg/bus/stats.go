package bus

import "sync/atomic"

// Stats counts what this process did on the bus since it opened it.
type Stats struct {
	Appends, Conflicts, Retries, Full, Landed uint64 // Landed: found landed after an answer was lost or refused
	Events, Forms, Controls                   uint64
	TailBatches, TailEntries, TailRestarts    uint64
	Mints, MintRetries, DeadLetters           uint64
	FoldsAsked, FoldsHedged, FoldsBusy        uint64 // as a caller
	FoldsQueued                               uint64
	FoldsServed, FoldsRefused, FoldsShared    uint64 // as a worker
	FoldsWaited, FoldsDisplaced               uint64 // took a place in the waiting room; lost it to a more urgent one
	FoldJobs, FoldJobRetries                  uint64 // from the queue: done; to be tried again
	Reconnects                                uint64
}

type counters struct {
	appends, conflicts, retries, full, landed atomic.Uint64
	events, forms, controls                   atomic.Uint64
	tailBatches, tailEntries, tailRestarts    atomic.Uint64
	mints, mintRetries, deadLetters           atomic.Uint64
	foldsAsked, foldsHedged, foldsBusy        atomic.Uint64
	foldsQueued                               atomic.Uint64
	foldsServed, foldsRefused, foldsShared    atomic.Uint64
	foldsWaited, foldsDisplaced               atomic.Uint64
	foldJobs, foldJobRetries                  atomic.Uint64
	reconnects                                atomic.Uint64
}

// Stats returns the counters as they stand.
func (b *Bus) Stats() Stats {
	c := &b.count
	return Stats{
		Appends: c.appends.Load(), Conflicts: c.conflicts.Load(), Retries: c.retries.Load(), Full: c.full.Load(), Landed: c.landed.Load(),
		Events: c.events.Load(), Forms: c.forms.Load(), Controls: c.controls.Load(),
		TailBatches: c.tailBatches.Load(), TailEntries: c.tailEntries.Load(), TailRestarts: c.tailRestarts.Load(),
		Mints: c.mints.Load(), MintRetries: c.mintRetries.Load(), DeadLetters: c.deadLetters.Load(),
		FoldsAsked: c.foldsAsked.Load(), FoldsHedged: c.foldsHedged.Load(), FoldsBusy: c.foldsBusy.Load(),
		FoldsQueued: c.foldsQueued.Load(), FoldsWaited: c.foldsWaited.Load(), FoldsDisplaced: c.foldsDisplaced.Load(),
		FoldJobs: c.foldJobs.Load(), FoldJobRetries: c.foldJobRetries.Load(),
		FoldsServed: c.foldsServed.Load(), FoldsRefused: c.foldsRefused.Load(), FoldsShared: c.foldsShared.Load(),
		Reconnects: c.reconnects.Load(),
	}
}
