// Package summarizer makes floor summaries. It has three parts.
//
// The [Caller] is a gateway's: it asks the pool for a fold that is needed, or queues one that nobody waits for. A [Job]
// carries everything that sways the answer; its bytes travel as a blob. Whatever fails, there is an answer within the
// deadline: the static checkpoint stands behind everything.
//
// The [Worker] is a summariser's: it takes jobs from the bus, makes sure that the span it was given is the one that the
// coverage names ([Folder]), has it summarised, and puts the summary on the log before it replies. It needs no store.
//
// A [Summarise] is a source of summaries: a language model ([Model]), the extractive summariser, the static checkpoint.
// The model proposes; what becomes of a proposal is [constitution.Adopt]'s to say. A model's request shows the span as
// data between marks that no text of the span can forge, or stands behind the agent's own request, so that the
// provider's cache of it serves.
package summarizer
