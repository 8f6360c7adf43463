// Package summarizer answers folds: it takes the request for a summary as it travels, makes sure that the span it
// was given is the one that the coverage names, and has it summarised. A worker needs no store: everything that
// sways the answer comes with the job. This half is pure; who carries jobs and answers is wired elsewhere.
package summarizer
