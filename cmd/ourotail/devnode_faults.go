package main

import (
	"strconv"
	"strings"

	"github.com/ourotail/ourotail/chain"
	"github.com/ourotail/ourotail/devnode"
)

// layerNames are the layers at which --fault can break a message.
func layerNames() (out []string) {
	for l := range devnode.LayerEnd {
		out = append(out, l.String())
	}
	return out
}

// faultNamed returns the fault with a name of --fault.
func faultNamed(name string) (devnode.Fault, bool) {
	switch name {
	case "skip":
		return devnode.Skip, true
	case "repeat":
		return devnode.Repeat, true
	case "silence":
		return devnode.Silence, true
	case "hang-up":
		return devnode.HangUp, true
	case "wrong-parent":
		return devnode.WrongParent, true
	case "false-origin":
		return devnode.FalseOrigin, true
	case "malformed-point":
		return devnode.MalformedPoint(1), true
	}
	for l := range devnode.LayerEnd {
		if name == "corrupt-"+l.String() {
			return devnode.Corrupt(l), true
		}
	}
	return nil, false
}

// parseFaults reads what --fault was given; nil for nothing.
func parseFaults(texts []string) (devnode.Fault, error) {
	var all []devnode.Fault
	for _, text := range texts {
		name, where, ok := strings.Cut(text, "@")
		where, times, limited := strings.Cut(where, "*")
		h, err := strconv.ParseInt(where, 10, 64)
		if !ok || err != nil || h < 0 {
			return nil, usage("--fault %q: want NAME@HEIGHT or NAME@HEIGHT*N", text)
		}
		f, known := faultNamed(name)
		if !known {
			return nil, usage("--fault %q: no fault is called %q; see devnode --help", text, name)
		}
		if limited {
			n, err := strconv.ParseInt(times, 10, 64)
			if err != nil || n < 1 {
				return nil, usage("--fault %q: %q is no number of times", text, times)
			}
			f = devnode.Times(n, f)
		}
		all = append(all, devnode.AtHeight(chain.Height(h), f))
	}
	if all == nil {
		return nil, nil
	}
	return devnode.All(all...), nil
}
