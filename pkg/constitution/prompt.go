package constitution

import _ "embed" // the prompt is a document

//go:embed constitution.md
var prompt string

// Prompt is the law as a model is told it. What a model makes of it is parsed and merged by this package all the
// same.
func Prompt() string { return prompt }
