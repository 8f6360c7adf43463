// Package sqlitestore is the durable store: one SQLite file with a node's copy of the log. It is the only package
// that speaks to database/sql.
//
// # What stands where
//
// The tables keep the specification's names: task_message, task_compaction_snapshot (what is applied, with its
// history), task_tool_compaction (what is available). Beside them stand the frames and events as the log brought
// them, without the contents, which are rows or blobs of their own; an entry's hash covers only the digests of its
// contents, so the chain can be recomputed from what is kept. Every read of an entry or a content checks its digest.
//
// # Writing
//
// One goroutine writes, from Open to Close. It takes what is queued (256 entries or 4 MB) into one transaction and
// answers when that is committed; the commit is the window in which the next batch gathers, so there is no timer. If
// any of the calls in a batch fails, the batch is rolled back and each is done singly: a bad entry fails alone. No
// cancellable context reaches a write: an interrupted statement can strand a transaction. A caller whose context ends
// stops waiting, and its write may still be done; to repeat it is harmless.
//
// # Crash and recovery
//
// Rows and cursor move in one transaction. The file is opened with synchronous NORMAL: a process that dies loses
// nothing, a power failure may lose the last commits, whole, and the cursor with them: the tail brings them again. A
// damaged file is told by SQLite or by a digest; the cure is to delete it, since it is built anew from the log.
//
// # Schema
//
// The migrations run in order at Open, each in a transaction of its own; user_version counts them. A file of a newer
// version is refused.
//
// # Several files
//
// A node keeps one file now. Nothing here says so but the caller: each Store has its own file, writer, cursors and
// blobs, and a task's entries all come from the streams of its partition, so a node may open one Store for each
// record stream and choose by partition.
package sqlitestore
