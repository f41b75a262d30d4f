package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/ourotail/ourotail/chain"
)

// job is what a child is to do.
type job struct {
	Mode    string
	Socket  string
	Data    string // ImmutableDB folder
	Config  string
	Network string
	Magic   uint32
	Tip     chain.Tip
	Dir     string // for a data directory; it does not exist yet
	Limit   int    // blocks, 0 for all
	N       int
	Batch   int // blocks of a commit, 0 for the default
	Memory  int64
	Archive bool          // keep spent outputs
	Replay  bool          // and read the past beside, over and over
	Pace    time.Duration // between two blocks at the tip, about; 0 for 30 ms
}

var modes = map[string]func(job) (result, error){
	"serve": serve, "live": serveLive,
	"sync": sync, "discard": discard, "raw": gouroborosRaw, "decoded": gouroborosDecoded,
	"walk": walkOurs, "walk-gouroboros": walkGouroboros, "walk-lazy": walkLazy,
	"commit": commit, "gather": gather,
	"tip": tipLatency, "rollback": rollBack,
	"hub": hubQuiet, "hub-weigh": hubWeigh, "hub-register": hubRegister,
	"grow": grow, "reopen": reopen,
}

func child(arg string) error {
	var j job
	if err := json.Unmarshal([]byte(arg), &j); err != nil {
		return err
	}
	run, ok := modes[j.Mode]
	if !ok {
		return fmt.Errorf("no mode is called %q", j.Mode)
	}
	if name := os.Getenv("BENCH_PROFILE"); name != "" && j.Mode == os.Getenv("BENCH_PROFILE_MODE") {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	before := mallocs()
	r, err := run(j)
	if err != nil {
		return err
	}
	if !r.counted {
		r.Allocs = float64(mallocs() - before)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil || j.Mode != "grow" {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL) // what it leaves is to be opened
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
