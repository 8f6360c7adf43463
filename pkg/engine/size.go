package engine

// Size is what a part weighs before scaling: the one estimator of the engine (DESIGN §3.2). Text is in base tokens,
// UTF-8 bytes over four, and is scaled by what usage reports; Media is in tokens by pixels or pages, which no scale
// touches. The gate and the sweep add and subtract Sizes, so they cannot disagree.
type Size struct{ Text, Media int }

func (s Size) add(t Size) Size { return Size{s.Text + t.Text, s.Media + t.Media} }
func (s Size) sub(t Size) Size { return Size{s.Text - t.Text, s.Media - t.Media} }

// at is the size in predicted real tokens under a scale in permille.
func (s Size) at(scale int) int { return s.Text*scale/1000 + s.Media }

func (s Size) less(t Size, scale int) bool { return s.at(scale) < t.at(scale) }

// baseTokens estimates a text of n bytes.
func baseTokens(n int) int { return (n + 3) / 4 }
