package transcript

// Repairs counts what was mended or left out on the way from the file to the task.
type Repairs struct {
	Unanswered     int `json:"unanswered,omitempty"`      // calls without a result, given "[no result recorded]"
	SecondResults  int `json:"second_results,omitempty"`  // further, different results of one call, left out
	Orphans        int `json:"orphans,omitempty"`         // results whose call is not there, left out
	EmptyTexts     int `json:"empty_texts,omitempty"`     // texts without a visible character, left out
	BrokenLines    int `json:"broken_lines,omitempty"`    // lines that are not JSON, or longer than 64 MB
	Duplicates     int `json:"duplicates,omitempty"`      // copies of what is already there (resume copies, mirrors), merged
	UnknownRecords int `json:"unknown_records,omitempty"` // records that say nothing to the model, or of a type not known
	AbortedSteps   int `json:"aborted_steps,omitempty"`   // generations that failed, were aborted or hold nothing, left out
	MergedSteps    int `json:"merged_steps,omitempty"`    // generations with nothing to answer between them, made one
	OffPath        int `json:"off_path,omitempty"`        // records of branches that were given up
	Summaries      int `json:"summaries,omitempty"`       // a client's own summaries, left out of the raw history
	SideRequests   int `json:"side_requests,omitempty"`   // requests that are not the agent loop (titles, probes, /compact)
	RenamedCalls   int `json:"renamed_calls,omitempty"`   // call ids that came again or that the format does not take
	Inputs         int `json:"inputs,omitempty"`          // call inputs that were not what the format wants, wrapped
	Openers        int `json:"openers,omitempty"`         // conversations that began with the model, given a user message
	Media          int `json:"media,omitempty"`           // images whose bytes are not in the file, made a text
	BadText        int `json:"bad_text,omitempty"`        // invalid UTF-8 or lone surrogates, replaced by U+FFFD
	Usage          int `json:"usage,omitempty"`           // recorded usage that cannot belong to the text, left out
}

func (r *Repairs) add(o Repairs) {
	r.Unanswered += o.Unanswered
	r.SecondResults += o.SecondResults
	r.Orphans += o.Orphans
	r.EmptyTexts += o.EmptyTexts
	r.BrokenLines += o.BrokenLines
	r.Duplicates += o.Duplicates
	r.UnknownRecords += o.UnknownRecords
	r.AbortedSteps += o.AbortedSteps
	r.MergedSteps += o.MergedSteps
	r.OffPath += o.OffPath
	r.Summaries += o.Summaries
	r.SideRequests += o.SideRequests
	r.RenamedCalls += o.RenamedCalls
	r.Inputs += o.Inputs
	r.Openers += o.Openers
	r.Media += o.Media
	r.BadText += o.BadText
	r.Usage += o.Usage
}
