package drill

import (
	"slices"
	"strings"
	"testing"
)

// TestFoldAndMistakes folds a handful of events by hand.
func TestFoldAndMistakes(t *testing.T) {
	at := func(e event, slot int64) event {
		e.slot, e.point = slot, strings.Repeat("a", int(slot))
		e.tx = "t"
		e.id = e.ref + e.point
		return e
	}
	events := []event{
		{seed: true, slot: noSlot, ref: "g", address: "A", lovelace: 100},
		at(event{ref: "g", address: "A", lovelace: 100, spent: true}, 5),
		at(event{ref: "x", address: "B", lovelace: 90}, 5),
		at(event{undo: true}, 4),
		at(event{ref: "y", address: "B", lovelace: 7, invalid: true}, 6),
	}
	if got := fold(events, mistake{}); !same(got, map[string]int64{"A": 100, "B": 7}) {
		t.Errorf("by the rules: %v", got)
	}
	if got := foldSums(events, mistake{}); !same(got, map[string]int64{"A": 100, "B": 7}) {
		t.Errorf("by the rules, by sums: %v", got)
	}
	for name, want := range map[string]map[string]int64{
		"undo":    {"B": 97},
		"revive":  {"B": 7},
		"remove":  {"A": 100, "B": 97},
		"invalid": {"A": 100},
		"seed":    {"B": 7},
		"exact":   {"B": 97}, // no record of the block at slot 4 came
	} {
		i := slices.IndexFunc(mistakes, func(m mistake) bool { return m.name == name })
		if got := fold(events, mistakes[i]); !same(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := foldSums(events, mistakes[i]); name != "seed" && !same(got, want) {
			t.Errorf("%s by sums: %v, want %v", name, got, want)
		}
		if m, _ := diagnose(events, want); m == nil {
			t.Errorf("%s is not recognised", name)
		}
	}
	if m, _ := diagnose(events, map[string]int64{"A": 1}); m != nil {
		t.Errorf("an answer that nothing explains is explained: %s", m.describe)
	}
	d := &Difference{"B", "7", "97"}
	_, outputs := diagnose(events, map[string]int64{"B": 97})
	story := around(events, d, culprits(events, outputs, "B"))
	want := []string{"created  x with 90 lovelace in aaaaa", "undo     everything above aaaa"}
	if !slices.Equal(story, want) {
		t.Errorf("the story of B: %q", story)
	}
	if again := around(events, d, nil); !slices.Equal(again, want) { // by the amount
		t.Errorf("the story of B: %q", again)
	}
}

// TestMistakesHaveNames: each name is one mistake, and every day tells known ones.
func TestMistakesHaveNames(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mistakes {
		if m.name == "" || names[m.name] || m.describe == "" {
			t.Errorf("%+v", m)
		}
		names[m.name] = true
	}
	told := map[string]bool{}
	days := map[string]bool{}
	for _, d := range Days() {
		if days[d.Name] || d.Tests == "" || d.Catches == "" || !strings.HasSuffix(d.Tests, ".") {
			t.Errorf("%+v", d)
		}
		days[d.Name] = true
		for _, name := range d.tells {
			if !names[name] {
				t.Errorf("%s tells %q, which is no mistake", d.Name, name)
			}
			told[name] = true
		}
	}
	for name := range names {
		if !told[name] {
			t.Errorf("no day promises to tell %q", name)
		}
	}
}

func TestAnswers(t *testing.T) {
	got, err := parseAnswer([]byte("a 1\n\n b\t0\r\nc -9007199254740993"))
	if err != nil || !same(got, map[string]int64{"a": 1, "c": -9007199254740993}) {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{"a", "a b", "a 1 2", "a 1.5", "a 1e3", "a 18446744073709551616", "a 1\na 1"} {
		if got, err := parseAnswer([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	d, n := compare(map[string]int64{"b": 1, "c": 2}, map[string]int64{"a": 5, "c": 3})
	if n != 3 || *d != (Difference{"a", "0", "5"}) {
		t.Errorf("%d %+v", n, d)
	}
}
