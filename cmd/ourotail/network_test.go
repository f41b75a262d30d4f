package main

import (
	"context"
	"strings"
	"testing"

	"github.com/ourotail/ourotail/devnode/devtest"
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
