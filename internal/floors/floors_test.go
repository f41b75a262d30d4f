// Package floors holds the floor plan of ARCHITECTURE.md: imports point down
// only, and each outside library has one room.
package floors

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/ourotail/ourotail"

// floor is the height of each room's topmost folder. Rooms below a folder stand
// on its floor.
var floor = map[string]int{
	"chain": 0, "address": 0,
	"ledger": 1, "query": 1, "mailbox": 1, "immutabledb": 1,
	"chainsync": 2, "resolve": 2, "store": 2, "rollback": 2, "hub": 2, "devnode": 2,
	"follow": 3,
	"feed":   4, "sink": 4,
	"":         5,
	"cmd":      6,
	"internal": 6, // tests, benchmarks and drills that drive the whole
	"examples": 6,

	"internal/disk":  0, // how much room there is
	"internal/trial": 0, // what tests may do to the rooms above
}

// room is the one that a folder of the project belongs to.
func room(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	if len(parts) > 1 {
		two := parts[0] + "/" + parts[1]
		if _, own := floor[two]; own {
			return two
		}
	}
	return parts[0]
}

// sameFloor are the imports between rooms of one floor that the plan allows.
var sameFloor = map[[2]string]bool{
	{"cmd", "internal"}: true, // a command may drive a drill
}

// rooms says who alone may import an outside library, by import path prefix.
var rooms = map[string][]string{
	"github.com/dgraph-io/badger":            {"store"},
	"github.com/blinklabs-io/gouroboros":     {"chainsync", "devnode", "internal"},
	"github.com/btcsuite/btcd/btcutil":       {"address", "devnode"}, // devnode is an oracle: it shares no code with what it checks
	"github.com/fxamacker/cbor":              {"ledger", "devnode", "internal"},
	"github.com/spf13/cobra":                 {"cmd"},
	"github.com/schollz/progressbar":         {"cmd"},
	"github.com/fatih/color":                 {"cmd"},
	"gonum.org/v1/plot":                      {"internal"},
	"github.com/cenkalti/backoff":            {"follow", "cmd", "chainsync", ""},
	"github.com/ourotail/ourotail/chainsync": {"", "cmd", "internal"},
	"github.com/ourotail/ourotail/store":     {"", "cmd", "internal"},
}

func TestImportsPointDown(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata") {
			if d != nil && d.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, _ := filepath.Rel(root, file)
		from := room(path.Dir(filepath.ToSlash(rel)))
		if from == "." {
			from = ""
		}
		at, known := floor[from]
		if !known {
			t.Errorf("%s: no floor is given for %q", rel, from)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			test := strings.HasSuffix(rel, "_test.go")
			if to, own := strings.CutPrefix(imported, module); own {
				to = room(strings.TrimPrefix(to, "/"))
				if below, ok := floor[to]; !ok {
					t.Errorf("%s imports %s, which has no floor", rel, imported)
				} else if to != from && below >= at && !sameFloor[[2]string{from, to}] && !test {
					t.Errorf("%s (floor %d) imports %s (floor %d)", rel, at, imported, below)
				}
			}
			for prefix, allowed := range rooms {
				if strings.HasPrefix(imported, prefix) && !slices.Contains(allowed, from) && !strings.HasSuffix(prefix, "/"+from) && !test {
					t.Errorf("%s imports %s, which belongs to %q", rel, imported, allowed)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFollowKnowsOnlyInterfaces: follow, tests included, imports neither store
// nor chainsync, so that fakes can stand for both.
func TestFollowKnowsOnlyInterfaces(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "follow", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if p := strings.Trim(spec.Path.Value, `"`); p == module+"/store" || p == module+"/chainsync" {
				t.Errorf("%s imports %s", file, p)
			}
		}
	}
}
