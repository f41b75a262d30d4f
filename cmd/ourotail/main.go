// Command ourotail follows a Cardano node: tail -f for the ledger, with every
// spent output resolved.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs a command line, says on stderr what went wrong, and returns the
// exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	err = outcome(ctx, errors.Join(err, out.failed()))
	if err != nil {
		fmt.Fprintln(stderr, "ourotail:", describe(err))
	}
	return exitCode(err)
}
