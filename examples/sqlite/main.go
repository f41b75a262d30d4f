// Command sqlite keeps the outputs of an address in a SQLite database that is right
// whatever happens: forks, kills, restarts. All it takes is that what an event does,
// and the cursor behind it, are written in one transaction.
//
//	go run . NODE.SOCKET NETWORK DATA-DIR ADDRESS outputs.db
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	_ "modernc.org/sqlite"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/ledger"
	"github.com/ourotail/ourotail/query"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: sqlite NODE.SOCKET NETWORK DATA-DIR ADDRESS outputs.db")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	genesis, err := ledger.Network(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	cfg := ourotail.Config{SocketPath: os.Args[1], Genesis: genesis, DataDir: os.Args[3]}
	if err := feed(ctx, cfg, os.Args[4], os.Args[5]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// An output belongs to the block at its height, and so does its spending: that is
// all it takes to undo a fork.
const schema = `
CREATE TABLE IF NOT EXISTS outputs (
	ref      TEXT PRIMARY KEY,
	lovelace INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	spent    INTEGER
);
CREATE TABLE IF NOT EXISTS position (id INTEGER PRIMARY KEY CHECK (id = 0), cursor TEXT NOT NULL);`

// feed follows the address into the database until ctx ends.
func feed(ctx context.Context, cfg ourotail.Config, address, file string) (err error) {
	q, err := query.ParseUTxO(address)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	f, err := ourotail.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()

	var start ourotail.UTxOOption = ourotail.Existing()
	var cursor string
	switch err := db.QueryRowContext(ctx, "SELECT cursor FROM position").Scan(&cursor); {
	case err == nil:
		start = ourotail.Resume(cursor)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	// What exists has no cursors but its last: it is one transaction.
	var tx *sql.Tx
	defer func() {
		if tx != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	for ev, err := range f.UTxOs(ctx, q, start, ourotail.AutoResume(), ourotail.Idle()) {
		if err != nil {
			return err
		}
		if tx == nil {
			if tx, err = db.Begin(); err != nil {
				return err
			}
		}
		if err := apply(tx, &ev); err != nil {
			return err
		}
		if ev.Cursor() == "" {
			continue
		}
		if _, err := tx.Exec("INSERT INTO position VALUES (0, ?) ON CONFLICT DO UPDATE SET cursor = excluded.cursor", ev.Cursor()); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		tx = nil
	}
	return nil
}

// apply writes what an event does.
func apply(tx *sql.Tx, ev *ourotail.UTxOEvent) (err error) {
	switch ev.Kind {
	case chain.Created:
		_, err = tx.Exec("INSERT OR REPLACE INTO outputs VALUES (?, ?, ?, NULL)", ev.UTxO.Ref.String(), int64(ev.UTxO.Out.Lovelace), int64(ev.At.Height))
	case chain.Spent:
		_, err = tx.Exec("UPDATE outputs SET spent = ? WHERE ref = ?", int64(ev.At.Height), ev.UTxO.Ref.String())
	case chain.RolledBack:
		if _, err = tx.Exec("DELETE FROM outputs WHERE created > ?", int64(ev.At.Height)); err == nil {
			_, err = tx.Exec("UPDATE outputs SET spent = NULL WHERE spent > ?", int64(ev.At.Height))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", ev.ID(), err)
	}
	return nil
}
