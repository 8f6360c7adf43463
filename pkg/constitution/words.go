package constitution

import "regexp"

// The words by which a sentence of the user is told. They are few on purpose: a rule that is missed still stands in
// the request itself, word for word; a rule that is made up is believed.
var (
	// ruleWords mark a standing limit, a prohibition or a condition.
	ruleWords = regexp.MustCompile(`(?i)\b(?:never|always|must|mustn'?t|must not|shall not|not allowed|forbidden|under no circumstances|no matter what|by no means|mandatory|required to)\b` +
		`|(?:^|[,;:(—–-]\s*|\b(?:please|and|but|so|just|also|then|or|should|shall|(?:sure|try|need|needs|have|has|want|careful|remember|important) to)\s+)(?:don'?t|don’t|do not|not to|avoid|refrain)\b` +
		`|\b(?:you|it|this|they|we) (?:should|may|can|will) (?:not|only)\b|\b(?:shouldn'?t|can only)\b` +
		`|(?:^|[,;:]\s*|\b(?:please|and|but|use|edit|change|touch|run)\s+)only\b` +
		`|\bask (?:me |us |the user )?(?:first|before|for (?:permission|confirmation|approval))\b|\b(?:check|confirm) with me\b` +
		`|\bwithout (?:asking|permission|approval|confirmation|my|telling|changing|breaking|using|adding|touching)\b` +
		`|(?:^|\b(?:please|and|but)\s+)(?:make sure|ensure|be sure|be careful|stick to|remember to|keep (?:it|them|the|this|all|your|every|each))\b` +
		`|\b(?:at most|at least|no more than|no less than|no fewer than|not more than|not exceed|up to|within|under|below|less than|fewer than|maximum(?: of)?|max(?: of)?|minimum(?: of)?|limit(?:ed)? (?:to|of))\s+[$€£~]?\d` +
		`|[≤≥]\s*\d`)

	// ruleWordsElsewhere are the same in other languages, where \b does not help.
	ruleWordsElsewhere = regexp.MustCompile(`(?i)(?:^|[^\p{L}])(?:nunca|siempre|sempre|jamás|jamais|toujours|niemals|immer|obligatoire|obligatorio|obrigatório|prohibido|proibido|interdit|verboten|никогда|всегда|нельзя|обязательно)(?:[^\p{L}]|$)` +
		`|^(?:não|nao|no|ne|nicht|bitte nicht|por favor,? n[oã]o?)\s+\p{L}` +
		`|必须|必須|不要|不得|禁止|总是|總是|务必|務必|只能|绝不|絕不|请勿|請勿|不许|ないで|必ず|てはいけ|てはなら|決して|絶対に|常に|항상|절대|반드시|하지 마`)

	// narrative marks a sentence that tells what happened instead of what shall hold.
	narrative = regexp.MustCompile(`(?i)\b(?:i|it|he|she|they|we|has|have|had|is|was|were|are|that|this|which|who|there|'?ve|'s)\s+(?:never|always|only)\b|\b(?:i|we|they|it|he|she) (?:don'?t|don’t|do not|doesn'?t|must have)\b|\bmust (?:be (?:a|an|the|that|because|something)|have (?:been|\w+ed|gone|done|come|got))\b`)

	// nothingWords mark a sentence that says what is not there: "No tests found" lays nothing down.
	nothingWords = regexp.MustCompile(`(?i)^no\b[^.!?\n]*\b(?:found|applied|given|provided|detected|available|exist(?:s|ed)?|returned|shown|reported|seen|made|needed|required|missing|such|longer|was|were|is|are|has|have|had|did|does|idea|worries|problem|matter)\b`)

	// purpose is why something is done, not what must not be.
	purpose = regexp.MustCompile(`(?i)\bto avoid\b`)

	// choiceWords mark a choice of approach, tool, format or convention.
	choiceWords = regexp.MustCompile(`(?i)\b(?:let'?s|let’s|let us) (?:use|go|stick|keep|do|call|name|make|switch|move|drop|skip|start|not|just|try|add|have)\b` +
		`|\bgo(?:ing)? with\b|\bwe(?:'ll|’ll| will| have)? (?:decided|chose|agreed|use|go with)\b|\bi(?:'ve|’ve| have|'d|’d)? (?:decided|chose|prefer|rather|want you to use|changed my mind)\b` +
		`|\binstead(?: of)?\b|\brather than\b|(?:^|[,;:-]\s*|\b(?:please|and|then|should)\s+)(?:use|prefer|name|call|switch to|rename|go with) ` +
		`|改用|采用|採用|决定|決定|ことにし|を使って|を使う|usemos|vamos usar|utilisons|wir nehmen|wir verwenden|verwende|benutze`)

	// guardedWords mark what a rule of safety or security is about, whatever it says of it.
	guardedWords = regexp.MustCompile(`(?i)\b(?:secrets?|passwords?|passphrases?|credentials?|api[ -]?keys?|private keys?|(?:access|auth|api|bearer) tokens?|\.env|privacy|private (?:data|information)|personal(?:ly)? (?:data|information|identif\w+)|pii|gdpr|hipaa|confidential|sensitive|security|secure|safety|unsafe|dangerous|malware|leak\w*|exfiltrat\w*|encrypt\w*|credit cards?|customer data|medical|patients?)\b` +
		`|contraseña|senha|mot de passe|passw[oö]rt|segur(?:idad|ança)|privaci|sécurité|datenschutz|sicherheit|密码|密碼|密钥|密鑰|隐私|隱私|安全|机密|機密|个人信息|個人情報|パスワード|秘密|プライバシー|비밀번호|개인정보|парол|персональн`)

	// harmfulWords mark what does harm that cannot be undone. A rule about it is one of safety where it forbids or
	// sets a condition; "delete the old files" is a task.
	harmfulWords = regexp.MustCompile(`(?i)\b(?:delet(?:e|es|ed|ing|ion)|remov(?:e|ing)|destroy\w*|drop (?:the |any )?(?:tables?|databases?)|truncate|wipe|overwrit\w+|rm -r\w*|production|prod|deploy\w*|force[- ]?push\w*|push(?:es|ing)?|publish\w*|reset --hard|payments?|charge)\b` +
		`|producci[oó]n|produção|生产环境|本番|削除|删除|刪除|삭제`)

	forbids = regexp.MustCompile(`(?i)\b(?:never|no|not|don'?t|don’t|mustn'?t|avoid|forbidden|without|unless|ask|confirm|permission|approval|careful|only (?:if|when|after))\b` +
		`|(?:^|[^\p{L}])(?:nunca|jamás|jamais|niemals|não|proibido|prohibido|interdit|verboten|nicht|никогда|нельзя)(?:[^\p{L}]|$)|不要|不得|禁止|绝不|請勿|请勿|别|ないで|いけない|ならない|決して|絶対に|하지 마|절대`)

	privacyWords = regexp.MustCompile(`(?i)\b(?:privacy|private (?:data|information)|personal(?:ly)? (?:data|information|identif\w+)|pii|gdpr|hipaa|customer data|medical|patients?)\b|privaci|datenschutz|隐私|隱私|个人信息|個人情報|プライバシー|개인정보|персональн`)

	// languageWords mark the wish to be answered in a language: kept as P0, since the summary's own language pulls.
	languageWords = regexp.MustCompile(`(?i)\b(?:reply|respond|answer|write|speak|talk|communicate|comments?|explain)\b[^.\n]{0,60}\bin (?:english|spanish|portuguese|french|german|italian|dutch|chinese|mandarin|japanese|korean|russian|arabic|hindi|turkish|polish|swedish|ukrainian|vietnamese)\b` +
		`|respond[ae]\p{L}*\s[^.\n]{0,30}\be[mn] (?:português|portugués|español|espanhol|inglês|inglés)|répond\p{L}*\s[^.\n]{0,30}en (?:français|anglais)|antworte\p{L}*\s[^.\n]{0,30}auf (?:deutsch|englisch)` +
		`|用(?:中文|英文|日文|英语|英語|汉语|日语)[^。\n]{0,12}(?:回答|回复|回覆|交流|写|說|说)|(?:日本語|英語|中国語)で[^。\n]{0,12}(?:答|返|回答|話|書|説明)` +
		`|(?:한국어|한글|영어|일본어|중국어)로\s*[^.\n]{0,20}(?:답|설명|말|써|쓰|작성|요약)|отвеча\p{L}*\s[^.\n]{0,30}(?:на \p{L}+ском|по-\p{L}+ски)`)
)

// aboutSafety reports whether a sentence states a rule of safety, privacy or security.
func aboutSafety(s string) bool {
	return guardedWords.MatchString(s) || harmfulWords.MatchString(s) && forbids.MatchString(purpose.ReplaceAllString(s, " "))
}

// functionWords are the words of four letters and more that every text of a language holds: they say nothing about
// what a sentence is about.
var functionWords = func() map[string]bool {
	set := map[string]bool{}
	for w := range stopWords {
		set[w] = true
	}
	for _, words := range common {
		for _, w := range words {
			set[w] = true
		}
	}
	return set
}()

func isStopWord(w string) bool { return functionWords[w] }
