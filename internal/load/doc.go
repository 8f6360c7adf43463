// Package load plays many synthetic agents against a gateway over HTTP and holds every view that comes back against
// the rules. The agents are made from a seed: the same seed gives the same calls with the same outputs, so what the
// minters must have made can be worked out afterwards, without keeping it.
package load
