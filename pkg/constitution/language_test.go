package constitution

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ullage/ullage/pkg/engine"
	"github.com/ullage/ullage/pkg/toolrule"
)

func TestLanguage(t *testing.T) {
	for _, c := range []struct{ want, text string }{
		{"en", "Please fix the parser and run the tests again."},
		{"pt", "Corrija o analisador e não apague os testes. Responda sempre em português."},
		{"es", "Arregla el analizador y no borres los tests, por favor."},
		{"fr", "Corrige l'analyseur et ne supprime pas les tests, s'il te plaît."},
		{"de", "Bitte repariere den Parser und lösche die Tests nicht."},
		{"it", "Correggi il parser e non cancellare i test, per favore."},
		{"nl", "Repareer de parser en verwijder de tests niet."},
		{"zh", "请修复 parser 的 bug，不要删除任何文件。"},
		{"ja", "パーサーを直してください。テストは消さないでください。"},
		{"ko", "파서를 고쳐 주세요. 테스트는 지우지 마세요."},
		{"ru", "Исправь парсер и не удаляй тесты."},
		{"uk", "Виправ парсер і не видаляй тести, будь ласка, її лишай."},
		{"ar", "أصلح المحلل من فضلك"},
		{"zh", "运行 `go test ./...`，然后修复 https://example.com/issue 里的问题"},
		{"en", `"Trace how the packages in this tree handle errors and tell me what you find."`},
		{"pt", "corrija o erro em src/the/parser_and_lexer.go e rode \"go test and then the linter\" sem mudar os testes"},
		{"", ""},
		{"", "ls -la"},
		{"", "42"},
		{"", "ok"},
	} {
		if got := Language([]string{c.text}); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// A digest in another language than the user's is flagged and stays as it is: code does not translate. One in the
// user's language is not; the names of the sections belong to no language.
func TestADigestInAnotherLanguageIsCounted(t *testing.T) {
	for _, c := range []struct {
		language, user, agent string
		own                   [3]string // a decision, a finding and a goal in the language of the user
	}{
		{
			"pt", "Corrija o analisador de faturas. Nunca apague os testes. Quero saber por que a soma está errada.",
			"Vou usar números decimais em vez de ponto flutuante, porque a soma das faturas perde centavos.",
			[3]string{"usar números decimais em vez de ponto flutuante, porque a soma perde centavos", "a soma das faturas perde centavos com ponto flutuante, e não há teste para isso", "corrigir o analisador de faturas"},
		},
		{
			"zh", "请修复发票解析器。不要删除任何测试文件。我想知道为什么总和是错的。",
			"我决定使用十进制数而不是浮点数，因为发票的总和会丢失几分钱。",
			[3]string{"使用十进制数而不是浮点数，因为发票的总和会丢失几分钱", "发票的总和会丢失几分钱，没有测试覆盖", "修复发票解析器"},
		},
		{
			"ja", "請求書のパーサーを直してください。テストは絶対に消さないでください。合計がなぜ間違っているのか知りたいです。",
			"浮動小数点ではなく十進数を使うことにしました。請求書の合計から数円が失われるためです。",
			[3]string{"浮動小数点ではなく十進数を使うことにしました", "請求書の合計から数円が失われる。テストはまだない", "請求書のパーサーを直す"},
		},
	} {
		t.Run(c.language, func(t *testing.T) {
			msgs, _ := script(t, "user\n"+c.user+"\n--\nagent\n"+c.agent+"\n--\ncall c1 Read\n{\"file_path\":\"/src/invoice.go\"}\n--\nresult c1\npackage invoice")
			msgs[len(msgs)-1].Blocks[0].Bytes = 20_000
			f := engine.Fold{Messages: msgs, ToStep: 0, Steps: 1, Cap: engine.DefaultSummaryCap, WEff: 56_000}
			answer := func(decision, finding, goal string) string {
				return fmt.Sprintf("## Decisions\nnumbers: %s\n\n## Findings\nsum: %s\n\n## Current state\nGoal: %s\nNext: %s\n", decision, finding, goal, goal)
			}
			flagged := func(text string) (engine.Summary, bool) {
				s, err := Adopt(f, []string{text}, toolrule.Builtin())
				if err != nil {
					t.Fatal(err)
				}
				upheld(t, f, s, Digest{}, UserTexts(msgs))
				return s, slices.Contains(s.Repairs, engine.Count{Kind: repairLanguage, N: 1})
			}
			s, bad := flagged(answer(c.own[0], c.own[1], c.own[2]))
			d, _ := Parse(s.Text)
			if bad || len(d.Facts[Decisions]) != 1 || d.Facts[Decisions][0].Statement != c.own[0] || d.State.Goal != c.own[2] {
				t.Errorf("an answer in the user's language: %v\n%s", s.Repairs, s.Text)
			}
			const english = "the sum of the invoices is wrong because it loses cents when it is read as a float in invoice.go"
			s, bad = flagged(answer("the agent will use decimals and not floats because of the lost cents", english, "fix the parser of the invoices"))
			d, _ = Parse(s.Text)
			if !bad {
				t.Errorf("an answer in English is not flagged: %v\n%s", s.Repairs, s.Text)
			}
			if i := indexKey(d.Facts[Findings], "sum"); i < 0 || d.Facts[Findings][i].Statement != english {
				t.Errorf("the English finding was changed:\n%s", s.Text)
			}
			if len(d.Facts[Constraints]) != 1 || d.Requests[0].Text != c.user {
				t.Errorf("the user's own words are lost:\n%s", s.Text)
			}
		})
	}
	t.Run("asked for", func(t *testing.T) {
		msgs, _ := script(t, "user\nCorrija o analisador de faturas, por favor, e não apague nada. Responda sempre em inglês.\n--\nagent\nDone with the parser of the invoices.\n--\ncall c1 Read\n{}\n--\nresult c1\nx")
		msgs[len(msgs)-1].Blocks[0].Bytes = 20_000
		f := engine.Fold{Messages: msgs, Steps: 1, Cap: engine.DefaultSummaryCap, WEff: 56_000}
		s, err := Adopt(f, []string{"## Findings\nparser: the agent is done with the parser of the invoices\n## Current state\nGoal: fix the parser of the invoices\n"}, toolrule.Builtin())
		if err != nil || slices.ContainsFunc(s.Repairs, func(c engine.Count) bool { return c.Kind == repairLanguage }) {
			t.Errorf("the user asked for English: %v, %v", s.Repairs, err)
		}
	})
}
