package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/ledger"
)

// TestNoAnswerForAnotherNetwork: a network that is named beside a data directory
// must be the directory's, whether a follower holds it or not.
func TestNoAnswerForAnotherNetwork(t *testing.T) {
	t.Setenv("CARDANO_NODE_NETWORK_ID", "")
	s := serve(t, 60)
	dir := t.TempDir()
	run := []string{"run", "--socket-path", s.socket, "--config", s.config, "--data-dir", dir, "--log-level", "error"}
	must(t, append(run, "--exit-at-tip")...)
	commands := [][]string{{"status"}, {"status", "--json"}, {"utxos"}, {"utxos", "--format", "lines"}, {"audit", "--socket-path", s.socket}, {"check"}}
	ask := func(t *testing.T, commands [][]string) {
		t.Helper()
		for _, args := range commands {
			args = append(args, "--data-dir", dir, "--log-level", "error")
			for _, named := range [][]string{{"--network", "preprod"}, {"--mainnet"}, {"--testnet-magic", "7"}} {
				if out, errs, code := ourotailCmd(t.Context(), append(args, named...)...); code != exitDiverged || out != "" || !strings.Contains(errs, "another network") {
					t.Errorf("%v %v: exit code %d: %s%s", args, named, code, out, errs)
				}
			}
			for _, named := range [][]string{{}, {"--config", s.config}, {"--testnet-magic", "42"}} {
				must(t, append(args, named...)...)
			}
		}
	}
	ask(t, commands)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		_, _, code := ourotailCmd(ctx, run...)
		ended <- code
	}()
	devtest.Eventually(t, "the follower answers", func() bool {
		st, err := remoteStatus(ctx, dir, false)
		return err == nil && st.Running
	})
	ask(t, commands[:len(commands)-1])
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("run ended with %d", code)
	}
}

// TestTailTakesTheNetworkFromTheDirectory: whoever names a node and a directory that
// knows its network need not name that. Of a network whose genesis is not built in the
// lines of a follower that runs are to be had all the same.
func TestTailTakesTheNetworkFromTheDirectory(t *testing.T) {
	t.Setenv("CARDANO_NODE_NETWORK_ID", "")
	g, err := ledger.Network("preview")
	if err != nil {
		t.Fatal(err)
	}
	known := t.TempDir()
	f, err := ourotail.Open(t.Context(), ourotail.Config{SocketPath: "none", Genesis: g, DataDir: known})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := newTail()
	cmd.SetContext(t.Context())
	if err := errors.Join(cmd.Flags().Set("data-dir", known), networkOfDir(cmd)); err != nil || cmd.Flags().Lookup("network").Value.String() != "preview" {
		t.Errorf("the network of the directory is %q: %v", cmd.Flags().Lookup("network").Value, err)
	}

	s := serve(t, 20)
	dir := t.TempDir()
	tail := []string{"tail", "--from", "origin", "--exit-at-tip", "--json", "--socket-path", s.socket, "--log-level", "error"}
	if _, errs, code := ourotailCmd(t.Context(), append(tail, "--data-dir", filepath.Join(dir, "new"))...); code != exitUsage || !strings.Contains(errs, "which network?") {
		t.Errorf("of a new directory: exit code %d: %s", code, errs)
	}
	run := start(t, append([]string{"run"}, s.node(dir)...)...)
	s.answers(t, dir)
	if got := must(t, append(tail, "--data-dir", dir)...); len(lines(got)) < 20 {
		t.Errorf("beside a run: %q", got)
	}
	run.ends(t)
	if _, errs, code := ourotailCmd(t.Context(), append(tail, "--data-dir", dir)...); code != exitNotThere || !strings.Contains(errs, "--config") {
		t.Errorf("without a run: exit code %d: %s", code, errs)
	}
}

// TestAnArchiveIsWantedWhereThereIsNone: the hint names both ways on.
func TestAnArchiveIsWantedWhereThereIsNone(t *testing.T) {
	s := serve(t, 20)
	run := append([]string{"run", "--exit-at-tip"}, s.node(t.TempDir())...)
	must(t, run...)
	_, errs, code := ourotailCmd(t.Context(), append(run, "--archive")...)
	if code == exitOK || !strings.Contains(errs, "leave --archive out") || !strings.Contains(errs, "--resync") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
