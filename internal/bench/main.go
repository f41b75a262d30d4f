// Command bench measures ourotail against comparators, in interleaved runs on
// one machine, and prints a table of ratios. Each side runs in a process of its
// own, with the defaults of the Go runtime; the node that serves the chain is a third.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		if err := child(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench child:", err)
			os.Exit(1)
		}
		return
	}
	runs := flag.Int("runs", 5, "measured runs of each side, in turns")
	only := flag.String("only", "", "only rows whose name contains this")
	blocks := flag.Int("blocks", 20_000, "blocks of the mainnet-like chain")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Printf("%s %s/%s, %d CPUs, %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	fmt.Printf("%-44s %-26s %8s %8s %8s  %s\n", "row", "against", "median", "min", "max", "per block, and peaks (median of ours | theirs)")
	for _, r := range rows(*blocks) {
		if !strings.Contains(r.name, *only) {
			continue
		}
		if err := r.run(ctx, *runs); err != nil {
			fmt.Printf("%-44s %s\n", r.name, err)
		}
	}
}
