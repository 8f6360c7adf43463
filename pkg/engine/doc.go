// Package engine decides, in values, what an agent's model sees: it reads messages, a snapshot and a budget, and
// returns a projection, the entries to remember and a report. It has no clock, no I/O, no context, no lock and no
// logger.
package engine
