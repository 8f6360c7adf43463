package constitution

import (
	"regexp"
	"strings"
	"unicode"
)

// languageSample bounds the text that is looked at.
const languageSample = 64 << 10

// What says nothing of a language: code, paths and addresses, and what is quoted.
var (
	notWords = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`" + `|https?://\S+|\S*[/\\_@]\S*|\b\w+\.\w+\S*`)
	inQuotes = regexp.MustCompile("\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»")
)

// Language is the language of texts that a person wrote, as a code of ISO 639-1 ("pt", "zh", "ja", …), "" if it
// cannot be told. Code, quotations and paths in them are not looked at.
func Language(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		if b.Len() > languageSample {
			break
		}
		b.WriteString(head(t, languageSample) + "\n")
	}
	s := strings.ToLower(notWords.ReplaceAllString(b.String(), " "))
	if l := languageOf(inQuotes.ReplaceAllString(s, " ")); l != "" {
		return l
	}
	return languageOf(s) // all of it may stand in quotation marks
}

func languageOf(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\'' && r != '’' })
	if l := byScript(words); l != "latin" {
		return l
	}
	return byWords(words)
}

// scripts whose use tells the language.
var scripts = []struct {
	table    *unicode.RangeTable
	language string
}{
	{unicode.Hiragana, "ja"},
	{unicode.Katakana, "ja"},
	{unicode.Hangul, "ko"},
	{unicode.Han, "zh"},
	{unicode.Cyrillic, "ru"},
	{unicode.Arabic, "ar"},
	{unicode.Hebrew, "he"},
	{unicode.Greek, "el"},
	{unicode.Thai, "th"},
	{unicode.Devanagari, "hi"},
}

// byScript tells a language by its letters, or says "latin". Names and terms in Latin letters stand in every
// language, so a third of the words is enough for another script.
func byScript(words []string) string {
	runes := map[string]int{}
	latin, other := 0, 0
	for _, w := range words {
		l := ""
		for _, r := range w {
			for _, s := range scripts {
				if unicode.Is(s.table, r) {
					l = s.language
					runes[l]++
					break
				}
			}
		}
		if l == "" && strings.ContainsFunc(w, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
			latin++
		}
	}
	best := ""
	for _, s := range scripts {
		if n := runes[s.language]; best == "" && n > 0 || n > runes[best] {
			best = s.language
		}
	}
	// Japanese is written with more kanji than kana in some sentences, but with hardly any kana Chinese is.
	if best == "zh" && runes["ja"]*10 > runes["zh"] {
		best = "ja"
	}
	switch best {
	case "":
		if latin == 0 {
			return ""
		}
		return "latin"
	case "zh", "ja", "th":
		other = runes[best] / 2
		if best == "ja" {
			other += runes["zh"] / 2
		}
	case "ko":
		other = runes[best] / 3
	default:
		other = runes[best] / 5
	}
	if other+1 < latin/2 {
		return "latin"
	}
	if best == "ru" && strings.ContainsAny(strings.Join(words, ""), "іїєґ") {
		return "uk"
	}
	return best
}

// common are the words by which languages in Latin letters are told. Several languages may own one.
var common = map[string][]string{
	"en": strings.Fields("the and is are was were to of in that this it with for on not you your be have has from as at by an or if then when what which how can should will do does must please all any make use add fix only but also into there we i my me"),
	"pt": strings.Fields("o a os as e é de do da dos das em no na nos nas um uma que não com para por se mas como está são foi ser ter você eu meu minha isso este esta esse essa ao à pelo pela já também mais muito quando onde sem sempre nunca faça use corrija depois antes até só agora ele ela"),
	"es": strings.Fields("el la los las y es de del en un una que no con para por se pero como está son fue ser tener tú usted yo mi esto este esta ese esa al ya también más muy cuando donde sin siempre nunca haz usa antes después hasta solo ahora lo le su sus hay hacer puede"),
	"fr": strings.Fields("le la les et est de du des en un une que qui ne pas avec pour par se mais comme sont être avoir vous je mon ma ce cette ces au aux déjà aussi plus très quand où sans toujours jamais dans sur il elle nous on fait faire avant après leur votre"),
	"de": strings.Fields("der die das und ist von zu in den dem ein eine einen einer dass nicht mit für auf sich aber wie sind war sein haben sie ich mein es im am auch mehr sehr wenn wo ohne immer nie bitte nur noch nach vor bei aus kann muss soll werden wird oder"),
	"it": strings.Fields("il lo la i gli le e è di del della dei in un una che non con per si ma come sono stato essere avere tu io mio mia questo questa al alla già anche più molto quando dove senza sempre mai nel nella ho hai ha fare prima dopo"),
	"nl": strings.Fields("de het een en is van te in dat niet met voor op zich maar als zijn was hebben je ik mijn ook meer zeer wanneer waar zonder altijd nooit alleen nog naar bij uit kan moet zal worden wordt of deze dit er wel"),
	"pl": strings.Fields("i w na nie to jest się z do że o jak ale po co tak za od już przez tylko być dla czy może oraz są był była ten ta te które który proszę zawsze nigdy bez przed"),
	"sv": strings.Fields("och att det i en ett är som på inte med för av den till har de om men var jag du vi kan ska från så eller när aldrig alltid utan bara också efter före min"),
	"tr": strings.Fields("ve bir bu için ile de da ne var yok ama çok daha gibi olarak değil ben sen biz lütfen her hiç sonra önce olan mi mı şu o kadar ise"),
}

// languages in the order in which they are tried: the same words give the same answer.
var latinLanguages = [...]string{"en", "pt", "es", "fr", "de", "it", "nl", "pl", "sv", "tr"}

// byWords tells a language in Latin letters by its commonest words. Two different ones at least must be met, and no
// second language may come near.
func byWords(words []string) string {
	count := map[string]int{}
	for _, w := range words {
		count[w]++
	}
	best, second, first := "", 0, 0
	for _, l := range latinLanguages {
		hits, kinds := 0, 0
		for _, w := range common[l] {
			if n := count[w]; n > 0 {
				kinds++
				hits += min(n, 1+len(words)/16) // one word said over and over is a name
			}
		}
		if kinds < 2 {
			continue
		}
		if hits > first {
			best, first, second = l, hits, first
		} else {
			second = max(second, hits)
		}
	}
	if first*10 < second*11 || first*12 < len(words) {
		return ""
	}
	return best
}

// spoken finds the language that a rule asks for by name.
var spoken = []struct {
	language string
	name     *regexp.Regexp
}{
	{"en", regexp.MustCompile(`(?i)\b(?:english|inglés|inglês|anglais|englisch|inglese)\b|英文|英语|英語|영어|английск`)},
	{"pt", regexp.MustCompile(`(?i)\bportugu[eêé]s|portugais|portugiesisch|葡萄牙|ポルトガル|португальск`)},
	{"es", regexp.MustCompile(`(?i)\b(?:spanish|español|espanhol|espagnol|spanis[c]h|castellano)\b|西班牙|スペイン|испанск`)},
	{"fr", regexp.MustCompile(`(?i)\bfrench\b|français|francés|francês|französisch|法语|法語|法文|フランス|французск`)},
	{"de", regexp.MustCompile(`(?i)\b(?:german|deutsch|alemán|alemão|allemand)\b|德语|德語|德文|ドイツ|немецк`)},
	{"it", regexp.MustCompile(`(?i)\bitalian`)},
	{"zh", regexp.MustCompile(`(?i)\b(?:chinese|mandarin|chino|chinês|chinois|chinesisch)\b|中文|汉语|漢語|中国語|китайск`)},
	{"ja", regexp.MustCompile(`(?i)\b(?:japanese|japonés|japonês|japonais|japanisch)\b|日文|日语|日語|日本語|японск`)},
	{"ko", regexp.MustCompile(`(?i)\bkorean\b|韩语|韓語|韓国語|한국어|한국말`)},
	{"ru", regexp.MustCompile(`(?i)\brussian\b|俄语|по-русски|русск`)},
}

// wanted is the language that the user reads: the one that the newest rule of the digest names, else the one that
// the requests are written in.
func wanted(d Digest, texts []string) string {
	for i := len(d.Facts[Constraints]) - 1; i >= 0; i-- {
		f := d.Facts[Constraints][i]
		if !strings.HasPrefix(f.Key, "reply-language") {
			continue
		}
		for _, l := range spoken {
			if l.name.MatchString(f.Statement) {
				return l.language
			}
		}
	}
	return Language(texts)
}
