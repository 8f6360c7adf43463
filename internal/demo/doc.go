// Package demo is the demonstration: a scripted agent works on a source tree with real tools, through a gateway that
// really runs, in a window small enough that every part of the operation is seen.
//
// The agent has no model. A script stands in for it: it plans from what the tools find, does the same on the same
// tree, and paces itself by the sizes that the gateway reports, so that each tier has a reason to act. All else is
// what an agent does: it keeps its whole history, asks for the view before each generation, runs its tools, and reports
// what finished and what was measured, over HTTP. Everything is written under one scratch directory, which is removed.
package demo
