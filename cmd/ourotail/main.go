// Command ourotail follows a Cardano node: tail -f for the ledger, with every
// spent output resolved.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that has gone away is an error of writing, after which we clean up.
	signal.Ignore(syscall.SIGPIPE)
	// A second signal ends the process at once: the store is crash-safe.
	go func() {
		<-ctx.Done()
		stop()
	}()
	cmd := newRoot()
	err := cmd.ExecuteContext(ctx)
	code := exitCode(err)
	if code != exitOK {
		fmt.Fprintln(os.Stderr, "ourotail:", describe(err))
	}
	os.Exit(code)
}
