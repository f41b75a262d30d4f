package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// machine describes what the figures were measured on and of.
func machine() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = ", commit " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return fmt.Sprintf("%s %s/%s, %d CPUs (%s), %s of memory, Linux %s, %s%s, GOGC %s, GOMEMLIMIT %s",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), field("/proc/cpuinfo", "model name"),
		field("/proc/meminfo", "MemTotal"), firstLine("/proc/sys/kernel/osrelease"), time.Now().UTC().Format(time.DateOnly), commit,
		or(os.Getenv("GOGC"), "default"), or(os.Getenv("GOMEMLIMIT"), "unset"))
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// load is the machine's load average now: what else ran.
func load() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return or(strings.Join(f[:min(3, len(f))], " "), "unknown")
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// field is the value of a "key: value" line.
func field(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}
