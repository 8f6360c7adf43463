// Package bench measures the operation against what the machine can do, in the same run: the ratios of DESIGN §8 that
// concern one step. Its histories are made, so it needs no data.
package bench
