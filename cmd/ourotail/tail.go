package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/store"
)

const tailHelp = `Follows the node into a data directory and prints a line for every output that a
query wants when it is created, and when it is spent, with what it held. A fork
is a line of its own: discard everything above the point it names. Where a
follower runs on the directory already, run or another tail, the lines come from it.
When a run ends or is killed, its tails wait a minute for it to come back before one
of them follows in its place.

` + queryHelp + `
--from says where the lines begin:
  tip         the node's tip as the command starts; what lies before is applied
              without a line. With --include-existing a line for each output that
              exists there comes first
  origin      the first block, with the outputs of the genesis
  SLOT.HASH   behind this block
  byron … conway   with the first block of that era, which the directory must have
What lies more than k blocks back needs a directory with --archive, or one that is
empty for --from origin.

Formats:
  pretty    for people
  json      one JSON object a line: {"event": seed | apply | undo | idle, "point",
            "height", "time", "record", "cursor", "final"}; --json is short for it
  effects   the canonical text: "+ OUTPUT", "- OUTPUT by TXID", "! POINT" for a fork;
            it has no line for seeds

What lines of JSON tell:
  undo      discard every record with a greater height: an output created there is
            gone, one spent there is unspent again and is not sent again
  time      when the slot of the point began, UTC: 2024-05-06T07:08:09Z
  final     k blocks lay on the block when the line was printed: no undo reaches it
  cursor    where --after goes on behind this line. The lines of a seed have none,
            but the last
  last_of_tx      nothing more comes of this transaction. Its lines come together
  last_of_block   nothing more comes of this block: what you keep by block is whole
  idle      with --idle, a block without lines: you have everything up to its
            point. So every block of the chain ends with last_of_block or idle, once,
            in order, and what was not undone by then is the truth at that block

Going on after an end, or a kill:
  --after CURSOR   the lines right behind that cursor's, and if a fork undid its block
      meanwhile, an undo first. A reader that stores the cursor of the last line it
      has dealt with, in one transaction with what it made of it, misses nothing and
      gets nothing twice, whichever side is killed, when and how often. Take the
      cursor of a line with last_of_tx, or of undo, idle, or the last of a seed.
      The empty text is no cursor, so that --after "$(cat F)" is right from the start.
  --cursor-file F  tail itself keeps the cursor behind the lines that are out, and
      goes on from there; --from then only says where to begin the first time. After a
      kill more may have been out than F says: an empty line comes first, which ends
      one that was torn, then an undo to what F says. A reader that heeds undo, passes
      over lines that are not whole, and outlives tail, as in
        while true; do ourotail tail --json --cursor-file F ...; done | reader
      is right whatever happens to tail. With --no-rollback there is no undo: lines
      may come twice, with the same id. What a reader was given and had not dealt with
      when it died itself, tail cannot know; such a reader uses --after. The file is
      for one tail at a time, and for the query, --types and --confirmations it began
      with.
A cursor of another network, or damaged, or from the future, or older than the
history kept, or that was undone too long ago is refused; see the exit codes.

A reader that is slow brakes following, and a signal ends it only after what is
committed has been printed: nothing is lost. One that shares another's follower
brakes nobody, and is safe while it is less than k blocks behind.

--limit N ends after N records, at the end of a transaction: there may be a few more.
Undo and idle lines do not count.`

const tailExample = `  ourotail tail --socket-path node.socket --network preview
  ourotail tail addr_test1... --network preview --json --cursor-file cursor | consumer
  ourotail tail --network preview --json --after "$(cat acknowledged)" | consumer
  ourotail tail --from origin --exit-at-tip --format effects --data-dir D`

func newTail() *cobra.Command {
	var f tailFlags
	cmd := &cobra.Command{
		Use:     "tail [QUERY...]",
		Short:   "Show outputs being created and spent, a line per event, as it happens",
		Long:    tailHelp,
		Example: tailExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.tail(cmd, args)
			if err != nil {
				return withWayOn(cmd, err)
			}
			defer t.sink.file.close()
			return ended(cmd.Context(), t.run(cmd.Context()))
		},
	}
	f.add(cmd)
	addFollowFlags(cmd)
	return cmd
}

// tailFlags are the command's own.
type tailFlags struct {
	from, after, cursorFile, types string
	req                            tailRequest
	confirmations                  int64
	limit                          int
	asJSON                         bool
}

func (f *tailFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "tip", "where to begin: tip, origin, a point SLOT.HASH, or the name of an era")
	flags.StringVar(&f.after, "after", "", "go on behind the line that had this cursor")
	flags.StringVar(&f.cursorFile, "cursor-file", "", "keep the cursor in this file, and go on from there")
	flags.StringVar(&f.types, "types", "both", "created, spent or both")
	flags.StringVar(&f.req.format, "format", "pretty", "pretty, json or effects")
	flags.BoolVar(&f.asJSON, "json", false, "the same as --format json")
	flags.BoolVar(&f.req.exitAtTip, "exit-at-tip", false, "end once the node has no more blocks")
	flags.Int64Var(&f.confirmations, "confirmations", 0, "show an event only once so many blocks are on top of its block")
	flags.BoolVar(&f.req.noRollback, "no-rollback", false, "show an event only once no fork can undo it, k blocks deep")
	flags.BoolVar(&f.req.idle, "idle", false, "a line for every block without any, too")
	flags.BoolVar(&f.req.existing, "include-existing", false, "begin with a line for each output that exists")
	flags.IntVar(&f.limit, "limit", 0, "end after so many records, at the end of a transaction")
}

// tail is one run of the command.
type tail struct {
	cmd    *cobra.Command
	req    tailRequest
	sink   *sink
	brake  brake
	lead   *leading // while we follow ourselves
	dir    string
	magic  uint32 // of the network that was named, 0 for none
	byTail bool   // who served us last was a tail, no run
	log    *slog.Logger
	cfg    ourotail.Config
	cannot error             // why we cannot follow ourselves; nil if we can
	names  map[string]string // of addresses, for pretty; nil for none
}

// tail reads the flags.
func (f *tailFlags) tail(cmd *cobra.Command, args []string) (t *tail, err error) {
	if err := f.request(cmd, args); err != nil {
		return nil, err
	}
	t = &tail{cmd: cmd, req: f.req, sink: newSink(cmd.OutOrStdout())}
	if t.log, err = newLogger(cmd, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	t.sink.limit = f.limit
	if f.cursorFile != "" {
		t.sink.file = &cursorFile{path: f.cursorFile, asked: t.req.asked()}
		if err := t.sink.file.open(); err != nil {
			t.sink.file.close()
			return nil, err
		}
		if kept := t.sink.file.kept; t.sink.file.known() {
			t.req.after, t.req.undo = &kept, !t.sink.file.orderly
		}
		if t.sink.anew, err = t.req.discardAll(); err != nil {
			t.sink.file.close()
			return nil, err
		}
	}
	t.sink.last = t.req.after
	if err := t.whom(cmd); err != nil {
		t.sink.file.close()
		return nil, err
	}
	return t, nil
}

// request checks the flags that say what to print.
func (f *tailFlags) request(cmd *cobra.Command, args []string) (err error) {
	q, given := &f.req, cmd.Flags().Changed
	if q.format, err = jsonFormat(cmd, f.asJSON, q.format); err != nil {
		return err
	}
	switch {
	case f.after != "" && given("from"):
		return usage("--after and --from both say where to begin: leave one out")
	case f.after != "" && f.cursorFile != "":
		return usage("--after is for a reader that keeps the cursor itself, with --cursor-file tail does: leave one out")
	case f.after != "" && q.existing:
		return usage("--include-existing is for the beginning, --after goes on: leave one out")
	case given("limit") && f.limit < 1:
		return usage("--limit %d: want 1 or more", f.limit)
	case q.noRollback && given("confirmations"):
		return usage("--no-rollback waits until no fork can undo a block, which is k confirmations: leave out --confirmations")
	}
	q.queries, q.confirmations, q.color = args, chain.Height(f.confirmations), isTerminal(cmd.OutOrStdout())
	if q.query, err = parseQueries(args); err != nil {
		return err
	}
	if q.from, err = parseFrom(f.from); err != nil {
		return err
	}
	if q.types, err = parseTypes(f.types); err != nil {
		return err
	}
	if q.after, err = parseAfter(f.after); err != nil {
		return err
	}
	return q.check()
}

// whom finds out which directory is meant, and whether we could follow into it
// ourselves: whoever only shares a follower needs to name neither node nor network.
func (t *tail) whom(cmd *cobra.Command) (err error) {
	if t.magic, err = wantedMagic(cmd); err != nil {
		return err
	}
	if _, t.cannot = socketPath(cmd); t.cannot == nil {
		t.cannot = networkOfDir(cmd)
	}
	if t.cannot == nil {
		t.cfg, err = followerConfig(cmd)
		t.cfg.ExitAtTip, t.cfg.Brake = t.req.exitAtTip, t.brake.wait
		t.dir = t.cfg.DataDir
		if err == nil && t.req.confirmations > chain.Height(t.cfg.Genesis.K) {
			err = usage("--confirmations %d is more than k = %d of this network: no rollback is deeper", t.req.confirmations, t.cfg.Genesis.K)
		}
		return err
	}
	t.dir, err = readDir(cmd)
	return err
}

// networkOfDir chooses the network of the data directory that is named, if no network
// is. Where that is one whose genesis is not built in, the error says what to give;
// lines of a follower that runs are to be had all the same.
func networkOfDir(cmd *cobra.Command) error {
	for _, name := range networkFlags {
		if cmd.Flags().Changed(name) {
			return nil
		}
	}
	dir, _ := cmd.Flags().GetString("data-dir")
	if dir == "" {
		return nil
	}
	st, err := statusOf(cmd.Context(), dir, time.Second)
	switch {
	case errors.Is(err, store.ErrNoStore): // who makes it has to say
		return nil
	case err != nil:
		return usage("which network? %s does not say (%v): give --network or --config to follow", dir, err)
	case st.Network == "":
		return usage("the network of %s, with magic %d, has no built-in genesis: to follow, pass --config with the node's config.json, which names the genesis files", dir, st.Magic)
	}
	return cmd.Flags().Set("network", st.Network)
}

// statusOf is what a directory, or the follower that holds it, says about itself.
func statusOf(ctx context.Context, dir string, patience time.Duration) (st ourotail.Status, err error) {
	err = askOrRead(ctx, dir, nil, patience, func() (err error) {
		st, err = remoteStatus(ctx, dir, false)
		return err
	}, func(d *ourotail.Dir) (err error) {
		st, err = d.Status(ctx, false)
		return err
	})
	return st, err
}
