package load

// History is a request of one agent at work in one turn, whose messages take about size bytes. Every call has its
// result, and the model is to speak next. more makes the messages of the agent's next step, one after the other.
func History(seed uint64, size int) (request []byte, more func() [][]byte) {
	before, after := envelope()
	a := NewAgent(seed, 0, 1<<30)
	clear(a.turns)
	r, _ := a.Next()
	opener := message("user", textBlock(a.w.prose(1000)))
	messages := [][]byte{opener, r.Answer, r.Result}
	more = func() [][]byte {
		r, _ := a.Next()
		return [][]byte{r.Answer, r.Result}
	}
	for n := 0; n < size; {
		for _, m := range more() {
			messages = append(messages, m)
			n += len(m)
		}
	}
	return body(before, after, messages, false), more
}
