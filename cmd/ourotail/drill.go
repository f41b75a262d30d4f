package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail/internal/drill"
)

// exitDrill is the exit code of a drill in which the consumer failed.
const exitDrill = 10

type drillFlags struct {
	seed         uint64
	days         []string
	watch        string
	k            int
	keep         string
	patience     time.Duration
	list, asJSON bool
}

func newDrill() *cobra.Command {
	var f drillFlags
	cmd := &cobra.Command{
		Use:   "drill [flags] -- CONSUMER [ARGS...]",
		Short: "Put your own consumer of tail's JSON lines through forks, kills and restarts",
		Long: `Runs a program of yours through scripted days and tells whether it came to the
truth. Each day an embedded node serves a generated chain that grows and forks,
ourotail follows it and is stopped or killed as the day demands, and your program
reads the lines of "ourotail tail --format json" on its standard input.

What your program has to do: read lines until its input ends, then print the
balance of each address, "ADDRESS LOVELACE" a line, and exit with status 0. The
balance is the sum of the address's unspent outputs. Balances of 0 may be printed
or left out. The truth is the ledger of the node's generator.

A line is {"event": apply | undo | seed, "point": {slot, hash}, "height": N, "record": {...}}.
  seed   an output that existed before the first block
  apply  record.kind is created or spent; record.output is the output
  undo   discard everything above the point: outputs created there are gone,
         outputs spent there are unspent again and are not sent again. An undo
         without a point goes back to where only the seed lines are left.
One that does this in Python:

  outputs = {}  # reference -> [address, lovelace, slot created, slot spent or None]
  for text in sys.stdin:
      line = json.loads(text)
      slot = line["point"]["slot"] if "point" in line and line["event"] != "seed" else -1
      if line["event"] == "undo":
          outputs = {r: [a, n, c, s if s is None or s <= slot else None]
                     for r, (a, n, c, s) in outputs.items() if c <= slot}
          continue
      out = line["record"]["output"]
      ref = out["transaction_id"], out["output_index"]
      if line["record"]["kind"] == "created":
          outputs[ref] = [out["address"], int(out["value"]["coins"]), slot, None]
      else:
          outputs[ref][3] = slot

Your program finds the day's name in OUROTAIL_DRILL_DAY and the addresses, with
spaces between, in OUROTAIL_DRILL_WATCH; it needs neither.

On one day, consumer-killed, your program is killed too, at random moments, and
started again. Each line has a "cursor". Your program may keep the cursor of a line
that it has dealt with in the file that OUROTAIL_DRILL_CURSOR names: as the first
line, and what follows is yours, so that cursor and state can be replaced together
(write another file, then rename it over this one). Started again it is given the
lines behind that cursor, an undo first if a fork undid its block meanwhile: just
what "ourotail tail --after CURSOR" does. Without a cursor there it is given every
line again. The cursor of any line will do, also inside a transaction; only lines
of a seed have none, but the last.

A failed day is reported with the first address that is wrong, the lines about
it, and how to run just that day again. The same seed makes the same chain and
the same forks; at which instant a kill strikes, and whether two quick forks are
seen as one, is not in anybody's hands. With --keep the lines your program was
given are kept: "consumer < DIR/DAY/stream.jsonl" is the same day without the drill.

Exit codes: 0 all days passed, 10 your program failed a day, 1 ourotail itself
was wrong or could not go on, 2 usage.`,
		Example: `  ourotail drill --list
  ourotail drill -- python3 consumer.py
  ourotail drill --days killed,depths --seed 7 --keep /tmp/drill -- ./consumer --quiet
  ourotail drill --watch all --json -- ./consumer | jq -r 'select(.passed | not) | .day'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return listDays(cmd.OutOrStdout())
			}
			return f.run(cmd, args)
		},
	}
	cmd.Flags().SetInterspersed(false) // the consumer's own flags are its own
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "another seed, other chains and other forks")
	cmd.Flags().StringSliceVar(&f.days, "days", []string{"all"}, "names of days, with commas between, or all")
	cmd.Flags().StringVar(&f.watch, "watch", "8", "about how many addresses the lines are, or all")
	cmd.Flags().IntVar(&f.k, "k", drill.DefaultK, "security parameter: how deep forks go, in blocks; the day killed has its own")
	cmd.Flags().StringVar(&f.keep, "keep", "", "keep each day's lines, your answer and the truth in this folder")
	cmd.Flags().DurationVar(&f.patience, "patience", drill.DefaultPatience, "give up when nothing happens for so long")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the days, and end")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "report a JSON object a day, on a line")
	return cmd
}

// newDrillTail is the process whose lines a drill passes on, and which it kills.
func newDrillTail() *cobra.Command {
	return &cobra.Command{
		Use:    "drill-tail SPEC",
		Hidden: true,
		Args:   usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := newLogger(cmd, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			spec, err := drill.ParseSpec(args[0])
			if err != nil {
				return coded(exitUsage, err)
			}
			return ended(cmd.Context(), drill.Tail(cmd.Context(), spec, cmd.InOrStdin(), cmd.OutOrStdout(), log))
		},
	}
}

func listDays(w io.Writer) error {
	for i, d := range drill.Days() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "%s\n  %s\n  Catches %s.\n", d.Name, d.Tests, d.Catches); err != nil {
			return err
		}
	}
	return nil
}

func (f *drillFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("which consumer? Give its command behind --, for instance: ourotail drill -- python3 consumer.py")
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return usage("the consumer cannot be started: %w", err)
	}
	days, err := drill.Find(f.days)
	if err != nil {
		return usage("--days: %w; see ourotail drill --list", err)
	}
	watch := 0
	if f.watch != "all" {
		if watch, err = strconv.Atoi(f.watch); err != nil || watch < 1 {
			return usage("--watch %q is neither a number above 0 nor all", f.watch)
		}
	}
	if f.k < drill.MinK || f.k > 2160 {
		return usage("--k %d: want %d to 2160", f.k, drill.MinK)
	}
	if f.patience <= 0 {
		return usage("--patience must be above 0")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rep := newDrillReport(cmd, len(days), func(day string) string { return f.again(cmd, day, args) }, f.asJSON)
	results, err := drill.Run(cmd.Context(), drill.Config{
		Consumer: args, Tail: []string{self, "drill-tail", "--log-level", "warn"}, Seed: f.seed, Days: days, K: f.k, Watch: watch,
		Keep: f.keep, Patience: f.patience, Progress: rep.progress, Done: rep.done,
	})
	rep.end()
	if err != nil {
		return err
	}
	return drillVerdict(results)
}

// drillVerdict is the error that the results amount to.
func drillVerdict(results []drill.Result) error {
	var failed, broken []string
	for _, r := range results {
		switch r.Fault {
		case drill.ByConsumer:
			failed = append(failed, r.Day)
		case drill.ByOurotail:
			broken = append(broken, r.Day)
		}
	}
	switch {
	case len(broken) > 0:
		return fmt.Errorf("not the consumer but ourotail failed on: %s", strings.Join(broken, ", "))
	case len(failed) > 0:
		return coded(exitDrill, fmt.Errorf("the consumer failed %d of %s: %s", len(failed), plural(len(results), "day"), strings.Join(failed, ", ")))
	}
	return nil
}

// again is the command that runs one day again.
func (f *drillFlags) again(cmd *cobra.Command, day string, args []string) string {
	words := []string{"ourotail", "drill", "--seed", strconv.FormatUint(f.seed, 10), "--days", day}
	for _, name := range []string{"k", "watch", "patience"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			words = append(words, "--"+name, flag.Value.String())
		}
	}
	keep := f.keep
	if keep == "" {
		keep = "DIR"
	}
	words = append(words, "--keep", keep, "--")
	for _, w := range args {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`&|;<>()*?[]{}#~!") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// drillReport shows days as they come and go.
type drillReport struct {
	out      io.Writer
	json     *json.Encoder // nil for people
	bar      *progressbar.ProgressBar
	again    func(day string) string
	ok, fail *color.Color
	passed   int
	days     int
}

func newDrillReport(cmd *cobra.Command, days int, again func(string) string, asJSON bool) *drillReport {
	r := &drillReport{out: cmd.OutOrStdout(), again: again, days: days, ok: color.New(color.FgGreen), fail: color.New(color.FgRed, color.Bold)}
	if asJSON {
		r.json = json.NewEncoder(r.out)
	}
	if !isTerminal(r.out) {
		r.ok.DisableColor()
		r.fail.DisableColor()
	}
	if isTerminal(cmd.ErrOrStderr()) {
		r.bar = progressbar.NewOptions(days, progressbar.OptionSetWriter(cmd.ErrOrStderr()), progressbar.OptionSetWidth(20),
			progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
	}
	return r
}

func (r *drillReport) progress(p drill.Progress) {
	if r.bar == nil {
		return
	}
	text := p.Day
	if p.Step != "" {
		text += ": " + p.Step
	}
	const width = 60
	if len(text) > width {
		text = text[:width-1] + "…"
	}
	r.bar.Describe(fmt.Sprintf("%-*s", width, text))
}

func (r *drillReport) done(res drill.Result) {
	if r.bar != nil {
		_ = r.bar.Clear() // what is shown besides is no result
		defer func() { _ = r.bar.Add(1) }()
	}
	if res.Passed {
		r.passed++
	}
	if r.json != nil {
		again := ""
		if !res.Passed {
			again = r.again(res.Day)
		}
		_ = r.json.Encode(struct {
			drill.Result
			Again string `json:"again,omitempty"`
		}{res, again}) // a reader that is gone misses the rest; the exit code stays
		return
	}
	word := r.ok.Sprint("ok  ")
	if !res.Passed {
		word = r.fail.Sprint("FAIL")
	}
	fmt.Fprintf(r.out, "%s  %-15s %6.1f s  %s\n", word, res.Day, res.Took.Seconds(), events(&res))
	if !res.Passed {
		r.explain(&res)
	}
}

// events says what a day was made of.
func events(r *drill.Result) string {
	parts := []string{plural(r.Blocks, "block"), plural(r.Lines, "line")}
	if r.Forks > 0 {
		parts = append(parts, fmt.Sprintf("%s up to %d deep", plural(r.Forks, "fork"), r.Deepest))
	}
	if r.Restarts > 0 {
		parts = append(parts, plural(r.Restarts, "restart"))
	}
	if r.Kills > 0 {
		parts = append(parts, plural(r.Kills, "kill"))
	}
	if r.Consumer > 0 {
		parts = append(parts, plural(r.Consumer, "kill")+" of the consumer")
	}
	return strings.Join(parts, ", ")
}

// explain says what went wrong on a day.
func (r *drillReport) explain(res *drill.Result) {
	line := func(indent int, text string) {
		for l := range strings.Lines(text) {
			fmt.Fprintf(r.out, "%*s%s\n", 6+indent, "", strings.TrimSuffix(l, "\n"))
		}
	}
	line(0, "The day: "+res.Tests)
	line(0, "Catches "+res.Catches+".")
	line(0, "")
	if res.Fault == drill.ByOurotail {
		line(0, "This is not the consumer's fault: "+res.Problem)
	} else {
		line(0, strings.ToUpper(res.Problem[:1])+res.Problem[1:])
	}
	if d := res.Difference; d != nil {
		line(0, "The first: "+d.Address)
		line(2, fmt.Sprintf("expected %20s lovelace", d.Expected))
		line(2, fmt.Sprintf("got      %20s lovelace", d.Got))
	}
	if res.Diagnosis != "" {
		line(0, "Just so answers a consumer that "+res.Diagnosis+".")
	}
	if len(res.Around) > 0 {
		line(0, "Lines about it:")
		for _, l := range res.Around {
			line(2, l)
		}
	}
	const most = 5
	if n := len(res.Steps); n > 0 {
		line(0, "What happened last:")
		for _, l := range res.Steps[max(0, n-most):] {
			line(2, l)
		}
	}
	line(0, "Again: "+r.again(res.Day))
}

func (r *drillReport) end() {
	if r.bar != nil {
		_ = r.bar.Clear()
	}
	if r.json == nil {
		fmt.Fprintf(r.out, "%d of %s passed.\n", r.passed, plural(r.days, "day"))
	}
}
