package main

import (
	"bufio"
	"errors"
	"io"
	"time"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/feed/record"
)

// piece is a line with what has to be known of it to count it and to go on behind
// it. Over the control socket it is a line of JSON itself.
type piece struct {
	Line   string       `json:"line,omitempty"`   // with its end; empty: nothing is to be seen
	Cursor *chain.Token `json:"cursor,omitempty"` // behind it; absent inside a seed
	Counts bool         `json:"counts,omitempty"` // it is a record
	Open   bool         `json:"open,omitempty"`   // more of its transaction comes
	Inside bool         `json:"inside,omitempty"` // more of its block comes, for all one knows
}

// pieces makes pieces of events.
type pieces struct {
	printer *printer
	idle    bool // show idle lines
	text    textBuffer
}

// textBuffer is what a printer prints to.
type textBuffer struct{ b []byte }

func (t *textBuffer) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	return len(p), nil
}

func newPieces(q *tailRequest, stamp record.Stamp) *pieces {
	p := &pieces{idle: q.idle}
	p.printer = newPrinter(&p.text, q.format)
	p.printer.stamp = &stamp
	if q.color {
		p.printer.colored()
	}
	return p
}

func (p *pieces) of(e *chain.UTxOEvent) (out piece, err error) {
	if e.Kind != chain.Idle || p.idle {
		p.text.b = p.text.b[:0]
		if err := errors.Join(p.printer.event(e), p.printer.flush()); err != nil {
			return out, err
		}
		out.Line = string(p.text.b)
	}
	if t, ok := p.printer.stamp.Token(e); ok {
		out.Cursor = &t
	}
	out.Counts = e.Kind == chain.Created || e.Kind == chain.Spent
	if out.Counts && e.Because == chain.Live {
		out.Open, out.Inside = !e.LastOfTx, !e.LastOfBlock
	}
	return out, nil
}

// errLimit ends a stream of which enough has come.
var errLimit = errors.New("as many as were asked for")

// sink is where lines go: those of a transaction together, then, once they are out,
// the cursor behind them into its file.
type sink struct {
	out   *bufio.Writer
	file  *cursorFile  // nil if nobody keeps the cursor
	span  chain.Height // how many idle blocks may pass before it is kept
	limit int          // 0 for none
	anew  string       // the line that discards everything

	held    []byte       // lines of a transaction that has not ended
	records int          // among them
	begun   bool         // lines were written
	counted int          // records among them
	last    *chain.Token // behind what was taken whole: from here another stream goes on
	whole   *chain.Token // the same, of whole blocks
	lines   bool         // lines were taken since the cursor was kept
}

// begin is called before anything else: from here on the cursor in the file may fall
// behind what is out. If its last tail was killed, an empty line ends the line that
// may have been torn. If it was killed before there was a cursor, its reader is told to
// discard all that it had: it comes again.
func (s *sink) begin() error {
	switch {
	case s.file == nil:
		return nil
	case s.file.begun:
		_, err := s.out.WriteString("\n" + s.anew)
		return err
	case !s.file.known():
		return nil
	case s.file.orderly:
		return s.file.keep(s.file.kept, false)
	}
	return s.out.WriteByte('\n')
}

// goOn is begin where lines go on in the same process: nothing is torn.
func (s *sink) goOn() error {
	if s.file == nil || !s.file.known() {
		return nil
	}
	return s.file.keep(s.file.kept, false)
}

func newSink(w io.Writer) *sink { return &sink{out: bufio.NewWriterSize(w, 1<<16)} }

// take takes a piece. It is errLimit once there are as many records as were asked
// for, at the end of a transaction.
func (s *sink) take(p *piece) error {
	if p.Counts {
		s.records++
	}
	s.held = append(s.held, p.Line...)
	if p.Open {
		return nil
	}
	if len(s.held) > 0 {
		if s.file != nil && !s.begun {
			if err := s.file.begin(); err != nil {
				return err
			}
		}
		if _, err := s.out.Write(s.held); err != nil {
			return err
		}
		s.begun, s.lines = true, true
	}
	s.counted += s.records
	s.drop()
	if p.Cursor != nil || p.Counts {
		s.last = p.Cursor
	}
	if !p.Inside && p.Cursor != nil {
		s.whole = p.Cursor
	}
	if s.limit > 0 && s.counted >= s.limit {
		return errLimit
	}
	return nil
}

// idleKeep is how often a cursor is kept behind which there are no lines.
const idleKeep = time.Second

// flush has everything out that came whole, and keeps the cursor behind the last
// whole block: not within one, because a reader that has had more is told so with an
// undo, and an undo is of whole blocks.
func (s *sink) flush() error {
	if err := s.out.Flush(); err != nil || s.file == nil || s.whole == nil {
		return err
	}
	if f := s.file; !s.lines && time.Since(f.at) < idleKeep && s.whole.At.Height-f.kept.At.Height < s.span {
		return nil
	}
	s.lines = s.last == nil || *s.last != *s.whole // those of a block that goes on
	return s.file.keep(*s.whole, false)
}

// drop forgets the lines of a transaction of which the rest does not come.
func (s *sink) drop() { s.held, s.records = s.held[:0], 0 }

// end is flush when nothing more comes: the cursor is that of the very last line.
func (s *sink) end() error {
	if err := s.out.Flush(); err != nil || s.file == nil || s.last == nil {
		return err
	}
	return s.file.keep(*s.last, true)
}

// reached is the height up to which everything is out and, if its cursor is kept, kept.
func (s *sink) reached() (chain.Height, bool) {
	switch {
	case s.file != nil:
		return s.file.kept.At.Height, s.file.known()
	case s.last != nil:
		return s.last.At.Height, true
	}
	return 0, false
}
