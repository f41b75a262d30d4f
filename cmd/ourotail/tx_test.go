package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
	"github.com/ourotail/ourotail/devnode/devtest"
	"github.com/ourotail/ourotail/devnode/forge"
)

// serveTxs serves a chain that begins in Conway, and returns the flags that follow
// it.
func serveTxs(t *testing.T) (*devnode.Chain, []string) {
	t.Helper()
	c := devtest.Generate(t, forge.Options{Seed: 4, K: 30, EpochBlocks: 8, Plain: true, Eras: []forge.EraSpan{{Era: chain.Conway}}}, 20)
	dir := t.TempDir()
	if err := c.Genesis().WriteConfig(dir); err != nil {
		t.Fatal(err)
	}
	return c, []string{"--socket-path", devtest.Start(t, devnode.Config{Chain: c}).Socket(), "--config", filepath.Join(dir, "config.json"),
		"--log-level", "error"}
}

func compose(t *testing.T, c *devnode.Chain) (file string, id chain.TxID) {
	t.Helper()
	tx, id, err := c.Compose(forge.Order{Pay: []forge.Payment{{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "tx", hex.EncodeToString(tx)), id
}

// TestTxCommand: without a follower the command follows itself; what it says and
// exits with goes with what becomes of the transaction.
func TestTxCommand(t *testing.T) {
	c, flags := serveTxs(t)
	flags = append(flags, "--data-dir", t.TempDir())
	file, id := compose(t, c)
	tx := func(more ...string) (string, int) {
		t.Helper()
		out, errs, code := ourotailCmd(t.Context(), append(append([]string{"tx", id.String()}, flags...), more...)...)
		t.Log(errs)
		return out, code
	}
	if out, code := tx(); code != exitTxUnknown || !strings.Contains(out, "not found") {
		t.Errorf("never seen: %d %s", code, out)
	}
	must(t, append([]string{"submit", file}, flags[:4]...)...)
	if out, code := tx(); code != exitTxWaiting || !strings.HasPrefix(out, "pending") {
		t.Errorf("submitted: %d %s", code, out)
	}
	if out, code := tx("--wait", "--timeout", "1500ms"); code != exitTxWaiting || !strings.Contains(out, "pending") {
		t.Errorf("in vain: %d %s", code, out)
	}
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	out, code := tx("--json")
	var r txReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.State != "confirmed" || r.ID != id || *r.Point != c.Tip().Point ||
		r.Height != c.Tip().Height || r.OnTop != 0 || r.Time == nil {
		t.Errorf("in a block: %d %s %v", code, out, err)
	}
	if out, code := tx("--confirmations", "2"); code != exitTxWaiting || !strings.HasPrefix(out, "confirmed") {
		t.Errorf("not deep: %d %s", code, out)
	}
	if err := c.Extend(2); err != nil {
		t.Fatal(err)
	}
	if out, code := tx("--wait", "--confirmations", "2"); code != exitOK || !strings.Contains(out, "2 blocks on top") {
		t.Errorf("deep: %d %s", code, out)
	}
	for name, args := range map[string][]string{
		"no id":    append([]string{"tx", "abc"}, flags...),
		"negative": append([]string{"tx", id.String(), "--confirmations", "-1"}, flags...),
	} {
		if _, errs, code := ourotailCmd(t.Context(), args...); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
	}
	if _, errs, code := ourotailCmd(t.Context(), "tx", id.String(), "--data-dir", flags[len(flags)-1]); code != exitUsage || !strings.Contains(errs, "no follower runs on") {
		t.Errorf("nobody to ask: %d %s", code, errs)
	}
}

// TestTxOverTheControlSocket: a running follower answers, and waits for us, through a
// fork that takes the block back.
func TestTxOverTheControlSocket(t *testing.T) {
	c, flags := serveTxs(t)
	dir := t.TempDir()
	ran := make(chan int, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, _, code := ourotailCmd(ctx, append([]string{"run", "--data-dir", dir}, flags...)...)
		ran <- code
	}()
	status := func() string {
		out, _, _ := ourotailCmd(t.Context(), "status", "--data-dir", dir, "--json")
		return out
	}
	devtest.Eventually(t, "the follower is at the tip", func() bool { return strings.Contains(status(), `"phase":"following"`) })
	file, id := compose(t, c)
	var out lockedBuffer
	code := make(chan int, 1)
	go func() {
		code <- execute(t.Context(), []string{"tx", id.String(), "--data-dir", dir, "--wait", "--confirmations", "2", "--json"}, strings.NewReader(""), &out, io.Discard)
	}()
	sees := func(states ...string) {
		t.Helper()
		devtest.Eventually(t, fmt.Sprint(states), func() bool {
			var got []string
			for _, l := range lines(out.String()) {
				var r txReport
				if json.Unmarshal([]byte(l), &r) == nil && (len(got) == 0 || got[len(got)-1] != r.State) {
					got = append(got, r.State)
				}
			}
			return strings.Contains(strings.Join(got, " "), strings.Join(states, " "))
		})
	}
	sees("notfound")
	must(t, append([]string{"submit", file}, flags[:4]...)...)
	sees("notfound", "pending")
	if err := c.Extend(1); err != nil {
		t.Fatal(err)
	}
	sees("pending", "confirmed")
	if err := c.Fork(1, 2); err != nil {
		t.Fatal(err)
	}
	sees("notfound")
	must(t, append([]string{"submit", file}, flags[:4]...)...)
	for range 3 {
		if err := c.Extend(1); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case got := <-code:
		last := lines(out.String())
		if !strings.Contains(last[len(last)-1], `"state":"confirmed"`) || got != exitOK {
			t.Errorf("exit code %d: %s", got, out.String())
		}
	case <-time.After(20 * time.Second):
		t.Error(out.String())
	}
	stop()
	if code := <-ran; code != exitOK {
		t.Errorf("run: exit code %d", code)
	}
}

// FuzzTxRequest: whatever is asked over the control socket is refused or means what
// it says.
func FuzzTxRequest(f *testing.F) {
	q := txRequest{id: chain.TxID{7}, wait: true, depth: 3}
	f.Add(q.values(2).Encode())
	f.Add("id=xyz&confirmations=-1")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parseTxRequest(v)
		if err != nil {
			return
		}
		if again, err := parseTxRequest(q.values(0)); err != nil || again != q {
			t.Errorf("%+v became %+v, %v", q, again, err)
		}
	})
}

// TestTxSaysFailedHoweverOld: a transaction whose scripts failed is never said to be
// confirmed: new or old, its collateral return unspent or spent.
func TestTxSaysFailedHoweverOld(t *testing.T) {
	const k = 30 // serveTxs'
	for _, mode := range []string{"pruned", "archive"} {
		c, flags := serveTxs(t)
		flags = append(flags, "--data-dir", t.TempDir())
		if mode == "archive" {
			flags = append(flags, "--archive")
		}
		pay := forge.Payment{Address: append([]byte{0x60}, make([]byte, 28)...), Lovelace: 3_000_000}
		include := func(o forge.Order) chain.TxID {
			t.Helper()
			ids, err := c.Include(o)
			if err != nil {
				t.Fatal(err)
			}
			return ids[0]
		}
		fail := func(outputs ...forge.Payment) chain.TxID {
			t.Helper()
			collateral := include(forge.Order{Pay: []forge.Payment{pay}})
			less := pay
			less.Lovelace--
			return include(forge.Order{Fails: true, Spend: []chain.TxIn{{ID: collateral}}, Pay: append(outputs, less)})
		}
		failed := map[string]chain.TxID{"return #3": fail(pay, pay, pay), "return #0": fail()}
		spent := fail(pay, pay, pay)
		include(forge.Order{Spend: []chain.TxIn{{ID: spent, Index: 3}}})
		if mode == "archive" {
			failed["return #3, spent"] = spent
		}
		for _, age := range []string{"new", "old"} {
			for name, id := range failed {
				out, errs, code := ourotailCmd(t.Context(), append([]string{"tx", id.String(), "--wait", "--confirmations", "1", "--timeout", "20s"}, flags...)...)
				if code != exitTxFailed || !strings.HasPrefix(out, "failed") {
					t.Errorf("%s, %s, %s: exit code %d: %s%s", mode, age, name, code, out, errs)
				}
			}
			if err := c.Extend(2 * k); err != nil {
				t.Fatal(err)
			}
		}
	}
}
