package ourotail_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// TestTheExportedAPIChangesOnPurpose compares what these packages export with a file
// that is changed in the same commit: go test -run ExportedAPI . -update
func TestTheExportedAPIChangesOnPurpose(t *testing.T) {
	var got bytes.Buffer
	for _, dir := range []string{".", "chain", "hub", "query"} {
		exported(t, &got, dir)
	}
	file := filepath.Join("testdata", "api.txt")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	t.Error("what is exported has changed. If that is meant: go test -run ExportedAPI . -update")
	lines := func(b []byte) map[string]bool {
		set := map[string]bool{}
		for l := range strings.Lines(string(b)) {
			set[l] = true
		}
		return set
	}
	was, is := lines(want), lines(got.Bytes())
	for l := range strings.Lines(got.String()) {
		if !was[l] {
			t.Logf("+ %s", l)
		}
	}
	for l := range strings.Lines(string(want)) {
		if !is[l] {
			t.Logf("- %s", l)
		}
	}
}

// exported writes the exported declarations of a folder's package, without comments.
func exported(t *testing.T, out *bytes.Buffer, dir string) {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, "github.com/ourotail/ourotail/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "package %s\n\n", p.Name)
	show := func(decls ...ast.Decl) {
		for _, d := range decls {
			out.WriteString(text(t, set, d))
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			show(v.Decl)
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			show(f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		out.WriteString("\n")
		show(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	out.WriteString("\n")
}

var blank = regexp.MustCompile(`\n\s*\n`)

// text is a declaration on its own, without its body.
func text(t *testing.T, set *token.FileSet, d ast.Decl) string {
	t.Helper()
	if f, ok := d.(*ast.FuncDecl); ok {
		f.Body = nil
	}
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}).Fprint(&b, set, d); err != nil {
		t.Fatal(err)
	}
	return blank.ReplaceAllString(b.String(), "\n") + "\n"
}
