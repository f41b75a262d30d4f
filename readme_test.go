package ourotail_test

import (
	"os"
	"strings"
	"testing"
)

// TestTheReadmeShowsAnExampleThatRuns: its program is the body of Example, its output
// the one that is checked.
func TestTheReadmeShowsAnExampleThatRuns(t *testing.T) {
	src, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(src), "func Example() {\n")
	code, output, found := strings.Cut(body, "\t// Output:\n")
	output, _, closed := strings.Cut(output, "}\n")
	if !ok || !found || !closed {
		t.Fatal("example_test.go has no Example with an output")
	}
	for what, want := range map[string]string{
		"program": "```go\n" + dedent(code, "\t") + "```\n",
		"output":  "```\n" + dedent(output, "\t// ") + "```\n",
	} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not show the %s of Example. It should have\n%s", what, want)
		}
	}
}

func dedent(text, prefix string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(l, prefix))
	}
	return b.String()
}
