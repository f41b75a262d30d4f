package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/internal/drill"
)

// TestMain lets the test binary be the processes that tests start and kill.
func TestMain(m *testing.M) {
	if path := os.Getenv(readerEnv); path != "" {
		os.Exit(acknowledge(path, os.Stdin))
	}
	if os.Getenv(mainEnv) != "" {
		main()
	}
	if len(os.Args) > 1 && os.Args[1] == "drill-tail" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func exampleProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../examples/"+name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestDrill: the good consumer passes, the bad one fails with its own exit code
// and a report that names the day and how to run it again.
func TestDrill(t *testing.T) {
	good, bad := exampleProgram(t, "consumer-good"), exampleProgram(t, "consumer-bad")
	out := must(t, "drill", "--days", "calm,origin", "--k", "12", "--", good)
	if !strings.Contains(out, "ok    calm") || !strings.Contains(out, "2 of 2 days passed.") {
		t.Error(out)
	}
	keep := t.TempDir()
	out, errs, code := ourotailCmd(t.Context(), "drill", "--days", "origin", "--seed", "2", "--k", "12", "--keep", keep, bad, "-bug", "undo")
	if code != exitDrill || !strings.Contains(errs, "1 of 1 day: origin") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"FAIL  origin", "The first: ", "expected", "ignores undo", "Again: ourotail drill --seed 2 --days origin --k 12 --keep " + keep + " -- " + bad + " -bug undo"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(keep, "origin", "stream.jsonl")); err != nil {
		t.Error(err)
	}
	out, _, code = ourotailCmd(t.Context(), "drill", "--days", "calm,origin", "--k", "12", "--json", "--watch", "all", "--", bad)
	dec := json.NewDecoder(strings.NewReader(out))
	var got []string
	for {
		var r struct {
			drill.Result
			Again string
		}
		if err := dec.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %t %t", r.Day, r.Passed, r.Again != ""))
	}
	if want := "calm true false, origin false true"; strings.Join(got, ", ") != want || code != exitDrill {
		t.Errorf("exit code %d, %s, want %s", code, strings.Join(got, ", "), want)
	}
}

func TestDrillUsage(t *testing.T) {
	if out := must(t, "drill", "--list"); strings.Count(out, "Catches") != len(drill.Days()) {
		t.Error(out)
	}
	for says, args := range map[string][]string{
		"drill -- python3":  {"drill"},
		"--list":            {"drill", "--days", "doomsday", "--", "true"},
		"nor all":           {"drill", "--watch", "0", "--", "true"},
		"want 12":           {"drill", "--k", "1", "--", "true"},
		"cannot be started": {"drill", "--", "/none/there"},
		"--patience":        {"drill", "--patience", "0s", "--", "true"},
		"SPEC":              {"drill-tail", "{"},
	} {
		if _, errs, code := ourotailCmd(t.Context(), args...); code != exitUsage || !strings.Contains(errs, says) && says != "SPEC" {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

// TestDevnodeWritesAFolder that it can serve, and whose digests a follower finds.
func TestDevnodeWritesAFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, "devnode", "--generate", "varied", "--blocks", "150", "--seed", "4", "--out", dir)
	config := filepath.Join(dir, "config.json")
	socket := devtest.Socket(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, "devnode", "--immutable", filepath.Join(dir, "immutable"), "--config", config, "--socket", socket)
		ended <- code
	}()
	devtest.Eventually(t, "the socket", func() bool { _, err := os.Stat(socket); return err == nil })
	data := t.TempDir()
	must(t, "run", "--socket-path", socket, "--config", config, "--data-dir", data, "--exit-at-tip", "--log-level", "error")
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("devnode ended with %d", code)
	}
	var st ourotail.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--data-dir", data, "--json")), &st); err != nil {
		t.Fatal(err)
	}
	digests, err := os.ReadFile(filepath.Join(dir, "digests.txt"))
	if err != nil || !strings.Contains(string(digests), fmt.Sprintf("utxos %d\n", st.UTxOs)) || !strings.Contains(string(digests), "point "+st.Head.String()) {
		t.Errorf("%v: %s\nbut found %+v", err, digests, st)
	}
}

// TestDevnodeFaultsAndWallClock: a node that misbehaves at some heights is
// followed to its tip all the same, and its tip is of now.
func TestDevnodeFaultsAndWallClock(t *testing.T) {
	socket := devtest.Socket(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, "devnode", "--generate", "varied", "--blocks", "60", "--socket", socket, "--wall-clock",
			"--fault", "hang-up@10*1", "--fault", "skip@30*1")
		ended <- code
	}()
	devtest.Eventually(t, "the socket", func() bool { _, err := os.Stat(socket); return err == nil })
	config := socket + ".config/config.json"
	data := t.TempDir()
	must(t, "run", "--socket-path", socket, "--config", config, "--data-dir", data, "--until", "50", "--log-level", "error")
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("devnode ended with %d", code)
	}
	var genesis struct{ StartTime int64 }
	raw, err := os.ReadFile(socket + ".config/byron-genesis.json")
	if err != nil || json.Unmarshal(raw, &genesis) != nil {
		t.Fatal(err)
	}
	var st ourotail.Status
	if err := json.Unmarshal([]byte(must(t, "status", "--data-dir", data, "--json")), &st); err != nil {
		t.Fatal(err)
	}
	// 60 blocks of a varied chain last about as long as Span says: the tip may be off by an epoch.
	at := time.Unix(genesis.StartTime+int64(st.Slot), 0)
	if age := time.Since(at); age < -48*time.Hour || age > 48*time.Hour {
		t.Errorf("block 50 is of %v", at)
	}
	for _, text := range []string{"skip", "skip@x", "skip@1*0", "frown@3", "corrupt-nothing@1"} {
		if _, errs, code := ourotailCmd(t.Context(), "devnode", "--generate", "varied", "--socket", devtest.Socket(t), "--fault", text); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", text, code, errs)
		}
	}
	if _, _, code := ourotailCmd(t.Context(), "devnode", "--out", t.TempDir()); code != exitUsage {
		t.Error("--out without --generate is taken")
	}
}
