package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/follow"
)

// isTerminal tells whether a person looks at w.
func isTerminal(w any) bool {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// reporter shows how a follower gets on: a progress bar on a terminal, log lines
// elsewhere.
type reporter struct {
	f     *ourotail.Follower
	out   io.Writer
	log   *slog.Logger
	tty   bool
	began time.Time
	last  follow.Status
	at    time.Time
	said  follow.Phase // of the newest line
	when  time.Time
}

func newReporter(f *ourotail.Follower, out io.Writer, log *slog.Logger) *reporter {
	now := time.Now()
	return &reporter{f: f, out: out, log: log, tty: isTerminal(out), began: now, at: now, last: f.Progress()}
}

// run reports until ctx ends; nothing if there is nobody to report to.
func (r *reporter) run(ctx context.Context) {
	if r.out == nil {
		return
	}
	every := 10 * time.Second
	if r.tty {
		every = 250 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var bar *progressbar.ProgressBar
	defer func() {
		if bar != nil {
			_ = bar.Exit()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.f.Progress()
		if r.tty {
			bar = r.show(bar, now)
		} else if t := time.Now(); r.due(now.Phase, t) {
			r.line(now)
			r.said, r.when = now.Phase, t
		}
		r.last, r.at = now, time.Now()
	}
}

func (r *reporter) show(bar *progressbar.ProgressBar, s follow.Status) *progressbar.ProgressBar {
	if s.Tip.Height <= 0 {
		return bar
	}
	if bar == nil {
		bar = progressbar.NewOptions64(int64(s.Tip.Height), progressbar.OptionSetWriter(r.out), progressbar.OptionShowCount(),
			progressbar.OptionShowIts(), progressbar.OptionSetItsString("blocks"), progressbar.OptionFullWidth(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	if bar.GetMax64() != int64(s.Tip.Height) {
		bar.ChangeMax64(int64(s.Tip.Height))
	}
	_, mb := r.rates(s)
	bar.Describe(fmt.Sprintf("%s · slot %s · %.1f MB/s", s.Phase, humanize.Comma(int64(s.Newest.Point.Slot)), mb))
	_ = bar.Set64(min(max(int64(s.Newest.Height), 0), int64(s.Tip.Height)))
	return bar
}

// rates are blocks and megabytes a second since the last report.
func (r *reporter) rates(s follow.Status) (blocks, mb float64) {
	sec := time.Since(r.at).Seconds()
	if sec <= 0 {
		return 0, 0
	}
	return float64(s.Blocks-r.last.Blocks) / sec, float64(s.Bytes-r.last.Bytes) / 1e6 / sec
}

// quiet is how often a log hears of a follower with which nothing happens.
const quiet = 10 * time.Minute

// due tells whether there is something to log: long work is told of every time, all
// else where it is new, and now and then as a sign of life.
func (r *reporter) due(p follow.Phase, now time.Time) bool {
	switch p {
	case follow.Syncing, follow.RollingBack:
		return true
	case follow.Connecting: // between two attempts
		return now.Sub(r.when) >= quiet
	}
	return p != r.said || now.Sub(r.when) >= quiet
}

func (r *reporter) line(s follow.Status) {
	blocks, mb := r.rates(s)
	args := []any{"phase", string(s.Phase), "height", int64(s.Newest.Height), "slot", uint64(s.Newest.Point.Slot), "tip", int64(s.Tip.Height)}
	if s.Tip.Height > 0 {
		args = append(args, "percent", fmt.Sprintf("%.2f", 100*float64(max(s.Newest.Height, 0))/float64(s.Tip.Height)))
	}
	args = append(args, "blocks/s", int64(blocks), "MB/s", fmt.Sprintf("%.1f", mb))
	if left := s.Tip.Height - s.Newest.Height; blocks > 1 && left > 10 {
		args = append(args, "eta", (time.Duration(float64(left)/blocks) * time.Second).String())
	}
	if s.LastError != nil {
		args = append(args, "error", s.LastError)
	}
	r.log.Info("progress", args...)
}

// summary says what this process has done.
func (r *reporter) summary() {
	s := r.f.Progress()
	took := time.Since(r.began)
	st := r.f.State()
	rate := 0.0
	if took > 0 {
		rate = float64(s.Blocks) / took.Seconds()
	}
	r.log.Info("done", "head", s.Head.At().String(), "blocks", s.Blocks, "txs", s.Txs, "bytes", s.Bytes, "rollbacks", s.Rollbacks,
		"took", took.Round(time.Millisecond).String(), "blocks/s", int64(rate), "utxos", st.UTxOs, "lovelace", st.Lovelace)
}
