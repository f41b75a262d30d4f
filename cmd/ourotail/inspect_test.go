package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ourotail/ourotail/internal/shared"
)

// TestInspectAgreesWithFacts runs the command over real blocks of every era.
func TestInspectAgreesWithFacts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(t), "blocks", "*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no blocks: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".hex"), func(t *testing.T) {
			var out bytes.Buffer
			cmd := newRoot()
			cmd.SetOut(&out)
			cmd.SetArgs([]string{"inspect", "--json", file})
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			facts, err := os.ReadFile(strings.TrimSuffix(file, "hex") + "json")
			if err != nil {
				t.Fatal(err)
			}
			want, got := numbers(t, facts), numbers(t, out.Bytes())
			delete(want.(map[string]any), "features")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-facts +inspect\n%s", diff)
			}
		})
	}
}

// numbers decodes JSON without turning amounts into floating point.
func numbers(t *testing.T, b []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestInspectRefusesWhatIsNoBlock(t *testing.T) {
	for name, input := range map[string]string{
		"empty":     "",
		"text":      "hello",
		"hex":       "deadbeef",
		"truncated": "820684",
		"an array":  "83010203",
	} {
		cmd := newRoot()
		cmd.SetIn(strings.NewReader(input))
		cmd.SetOut(new(bytes.Buffer))
		cmd.SetArgs([]string{"inspect", "-"})
		if err := cmd.ExecuteContext(t.Context()); exitCode(err) != exitBadInput {
			t.Errorf("%s: exit code %d (%v)", name, exitCode(err), err)
		}
	}
}
