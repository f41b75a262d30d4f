package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
)

// TestAudit drives audit as an operator would, on a directory at rest and on one
// that a follower holds: the same answers and the same exit codes.
func TestAudit(t *testing.T) {
	c := devtest.Generate(t, forge.Options{Seed: 3, EpochBlocks: 8, K: 50}, 150)
	files := t.TempDir()
	if err := c.Genesis().WriteConfig(files); err != nil {
		t.Fatal(err)
	}
	srv := devtest.Start(t, devnode.Config{Chain: c})
	dir, config := t.TempDir(), filepath.Join(files, "config.json")
	node := []string{"--socket-path", srv.Socket(), "--config", config, "--data-dir", dir, "--log-level", "error"}
	must(t, append([]string{"run", "--exit-at-tip"}, node...)...)
	tip := c.Tip()
	set, err := c.Oracle().Set(tip.Point.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var ref chain.TxIn
	for r := range set {
		ref = r
		break
	}
	hide := devnode.Behaviour{OnUTxO: func(_ chain.At, r chain.TxIn, out []byte) []byte {
		if r == ref {
			return nil
		}
		return out
	}}
	all := append([]string{"audit", "--sample", "100000"}, node...)

	check := func(t *testing.T) {
		srv.Behave(devnode.Behaviour{})
		if out := must(t, all...); !strings.Contains(out, "agrees on every one") || !strings.Contains(out, tip.Point.String()) {
			t.Errorf("it says:\n%s", out)
		}
		var r ourotail.AuditReport
		if err := json.Unmarshal([]byte(must(t, append(all, "--json")...)), &r); err != nil || r.Sampled != len(set) || r.Spent == 0 || r.Differences == nil {
			t.Errorf("%+v %v", r, err)
		}
		srv.Behave(hide)
		out, errs, code := ourotailCmd(t.Context(), all...)
		if code != exitDiffers || !strings.Contains(out, ref.String()) || !strings.Contains(out, "not unspent") || !strings.Contains(errs, "does not agree on 1 ") {
			t.Errorf("exit code %d: %s\n%s", code, out, errs)
		}
		out, _, code = ourotailCmd(t.Context(), append(all, "--json")...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDiffers || len(r.Differences) != 1 || r.Differences[0].Ref != ref {
			t.Errorf("exit code %d: %s", code, out)
		}
		srv.Behave(devnode.Behaviour{})
		base := []string{"audit", "--data-dir", dir, "--log-level", "error"}
		for name, c := range map[string]struct {
			args []string
			code int
			says string
		}{
			"node away":            {[]string{"--socket-path", dir + "/none"}, exitNode, "is it running"},
			"wrong network":        {[]string{"--socket-path", srv.Socket(), "--network", "preview"}, exitDiverged, "another network"},
			"a sample of nothing":  {[]string{"--socket-path", srv.Socket(), "--sample", "0"}, exitUsage, "--sample"},
			"an argument too many": {[]string{"--socket-path", srv.Socket(), "everything"}, exitUsage, "everything"},
		} {
			if _, errs, code := ourotailCmd(t.Context(), append(base, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
				t.Errorf("%s: exit code %d, want %d; it says: %s", name, code, c.code, errs)
			}
		}
	}
	t.Run("at rest", func(t *testing.T) {
		check(t)
		t.Setenv("CARDANO_NODE_SOCKET_PATH", "")
		if _, errs, code := ourotailCmd(t.Context(), "audit", "--data-dir", dir, "--log-level", "error"); code != exitUsage || !strings.Contains(errs, "--socket-path") {
			t.Errorf("no socket named: exit code %d: %s", code, errs)
		}
		if _, _, code := ourotailCmd(t.Context(), "audit", "--data-dir", dir+"/none", "--socket-path", srv.Socket()); code != exitNotThere {
			t.Errorf("no directory: exit code %d", code)
		}
	})
	t.Run("held by a follower", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			_, _, code := ourotailCmd(ctx, append([]string{"run"}, node...)...)
			ended <- code
		}()
		// Not by the command, which would hold the directory for a moment itself.
		devtest.Eventually(t, "the follower answers", func() bool {
			s, err := remoteStatus(ctx, dir, false)
			return err == nil && s.Running
		})
		check(t)
		t.Setenv("CARDANO_NODE_SOCKET_PATH", "")
		if out := must(t, "audit", "--data-dir", dir, "--log-level", "error"); !strings.Contains(out, "agrees on every one") {
			t.Errorf("with the follower's own node: %s", out)
		}
		stop()
		if code := <-ended; code != exitOK {
			t.Errorf("run ended with %d", code)
		}
	})
}

// TestPrintAudit: a long list of differences is cut for people.
func TestPrintAudit(t *testing.T) {
	var r ourotail.AuditReport
	for i := range 25 {
		r.Differences = append(r.Differences, ourotail.AuditDifference{Ref: chain.TxIn{Index: uint32(i)}, Kind: ourotail.DiffContents, Fields: []string{"lovelace", "datum"}, Ours: "o", Node: "n"})
	}
	r.Differences[0].Kind, r.Differences[1].Kind = ourotail.DiffMissing, ourotail.DiffUnreadable
	var b lockedBuffer
	if err := printAudit(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DOES NOT AGREE on 25 outputs", "#0: unspent for the node", "#1: cannot be decoded", fmt.Sprintf("#%d: not the same lovelace, datum", shownDifferences-1), "and 5 more"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}
