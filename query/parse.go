package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrSyntax is wrapped by every error of the Parse functions that is about the
// text.
var ErrSyntax = errors.New("not a query")

// SyntaxError points at the wrong place in a query's text.
type SyntaxError struct {
	Text       string
	Start, End int // bytes; they may both be len(Text)
	Reason     string
	Cause      error // may be nil
}

func (e *SyntaxError) Error() string {
	col := utf8.RuneCountInString(e.Text[:e.Start]) + 1
	what := "the end"
	if e.Start < e.End {
		what = fmt.Sprintf("%q", clip(e.Text[e.Start:e.End], 80))
	}
	return fmt.Sprintf("%v: column %d, at %s: %s", ErrSyntax, col, what, e.Reason)
}

// Unwrap returns ErrSyntax and the cause, if any.
func (e *SyntaxError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrSyntax}
	}
	return []error{ErrSyntax, e.Cause}
}

// Picture returns two lines: the text, and marks below the wrong place.
func (e *SyntaxError) Picture() string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, e.Text)
	marks := max(utf8.RuneCountInString(e.Text[e.Start:e.End]), 1)
	return line + "\n" + strings.Repeat(" ", utf8.RuneCountInString(e.Text[:e.Start])) + strings.Repeat("^", marks)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// maxNesting bounds how deep parentheses and nots may nest.
const maxNesting = 200

// token is a parenthesis, an operator word, or a leaf.
type token struct {
	text       string
	start, end int
}

func (t token) is(word string) bool { return strings.EqualFold(t.text, word) }

// parser reads
//
//	expression = term { "or" term }
//	term       = factor { "and" factor }
//	factor     = "not" factor | "(" expression ")" | leaf
//
// where operators are words in any case and a leaf is everything up to white
// space or a parenthesis.
type parser[T, K any] struct {
	text  string
	pos   int
	tok   token
	depth int
	leaf  func(p *parser[T, K], t token) (node[T, K], error)
	some  func(arms []node[T, K]) node[T, K]
}

func (p *parser[T, K]) fail(t token, cause error, format string, args ...any) error {
	return &SyntaxError{Text: p.text, Start: t.start, End: t.end, Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// advance reads the next token; its text is empty at the end.
func (p *parser[T, K]) advance() {
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		p.pos += n
	}
	start := p.pos
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if unicode.IsSpace(r) || (r == '(' || r == ')') && p.pos > start {
			break
		}
		p.pos += n
		if r == '(' || r == ')' {
			break
		}
	}
	p.tok = token{text: p.text[start:p.pos], start: start, end: p.pos}
}

func (p *parser[T, K]) parse() (node[T, K], error) {
	p.advance()
	if p.tok.text == "" {
		return nil, p.fail(p.tok, nil, "nothing is asked for (want a pattern; * is everything)")
	}
	n, err := p.expression()
	if err == nil && p.tok.text != "" {
		err = p.fail(p.tok, nil, `want "and", "or" or the end before it`)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (p *parser[T, K]) expression() (node[T, K], error) {
	return p.list("or", p.term, p.some)
}

func (p *parser[T, K]) term() (node[T, K], error) {
	return p.list("and", p.factor, func(arms []node[T, K]) node[T, K] { return all[T, K](arms) })
}

func (p *parser[T, K]) list(word string, part func() (node[T, K], error), join func([]node[T, K]) node[T, K]) (node[T, K], error) {
	var arms []node[T, K]
	for {
		n, err := part()
		if err != nil {
			return nil, err
		}
		arms = append(arms, n)
		if !p.tok.is(word) {
			break
		}
		p.advance()
	}
	if len(arms) == 1 {
		return arms[0], nil
	}
	return join(arms), nil
}

func (p *parser[T, K]) factor() (node[T, K], error) {
	if p.depth++; p.depth > maxNesting {
		return nil, p.fail(p.tok, nil, "nested deeper than %d", maxNesting)
	}
	defer func() { p.depth-- }()
	t := p.tok
	switch {
	case t.text == "":
		return nil, p.fail(t, nil, "want a pattern")
	case t.text == ")":
		return nil, p.fail(t, nil, `want a pattern before it`)
	case t.is("and"), t.is("or"):
		return nil, p.fail(t, nil, "want a pattern before it")
	case t.is("not"):
		p.advance()
		n, err := p.factor()
		if err != nil {
			return nil, err
		}
		return not[T, K]{n}, nil
	case t.text == "(":
		p.advance()
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		if p.tok.text != ")" {
			return nil, p.fail(p.tok, nil, `want ")" for the "(" in column %d`, utf8.RuneCountInString(p.text[:t.start])+1)
		}
		p.advance()
		return n, nil
	}
	p.advance()
	return p.leaf(p, t)
}
