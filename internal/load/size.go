package load

import (
	"math"
	"math/rand/v2"
)

// The sizes of tool outputs, in bytes, as agents at work on code have them: most are small, the mean is made by few.
const (
	hugeOutput = 400 << 10
	bigFrom    = 100 << 10
	bigTo      = 160 << 10
)

// outputSize draws the size of a tool's output.
func outputSize(r *rand.Rand) int {
	switch p := r.IntN(1000); {
	case p < 1:
		return hugeOutput
	case p < 8:
		return between(r, bigFrom, bigTo)
	case p < 180:
		return between(r, 5<<10, 20<<10)
	case p < 380:
		return between(r, 2<<10, 5<<10)
	}
	return between(r, 200, 2<<10)
}

// between draws a size that is as likely to lie in each octave.
func between(r *rand.Rand, from, to int) int {
	return int(float64(from) * math.Pow(float64(to)/float64(from), r.Float64()))
}
