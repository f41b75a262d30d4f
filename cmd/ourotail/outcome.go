package main

import (
	"context"
	"errors"
	"reflect"

	"github.com/ourotail/ourotail"
	"github.com/ourotail/ourotail/store"
)

// Several things can go wrong at once, and errors.Join says so. Some of them are
// no failures: they are dropped branch by branch, so that none hides another.

// ended drops from an error what is only the end that was asked for, by a signal
// for instance: of commands that go on until then.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return without(err, func(e error) bool { return e == context.Canceled || e == context.DeadlineExceeded }) //nolint:errorlint // the leaf itself
}

// outcome is what a command line failed of: not of a reader of its output who
// had enough. A command that was interrupted before it came to its end has
// failed, whatever it would have found.
func outcome(ctx context.Context, err error) error {
	err = without(err, readerGone)
	if err != nil && ended(ctx, err) == nil {
		return errors.New("interrupted")
	}
	return ended(ctx, err)
}

// without drops the branches that are nothing but harmless, and those that an
// earlier one says already.
func without(err error, harmless func(leaf error) bool) error {
	var kept []error
	for _, e := range branches(err) {
		if !only(e, harmless) && !said(kept, e) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return errors.Join(kept...)
}

// branches are the errors that were joined.
func branches(err error) []error {
	if err == nil {
		return nil
	}
	if !joined(err) {
		return []error{err}
	}
	var all []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() { //nolint:errorlint // this node itself
		all = append(all, branches(e)...)
	}
	return all
}

var joinedType = reflect.TypeOf(errors.Join(errors.ErrUnsupported))

// joined tells errors that stand side by side from one that has a kind and a
// cause, which wraps both too.
func joined(err error) bool { return reflect.TypeOf(err) == joinedType }

// only tells whether an error comes from nothing but harmless ones.
func only(err error, harmless func(leaf error) bool) bool {
	if harmless(err) {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // this node itself
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		return inner != nil && only(inner, harmless)
	case interface{ Unwrap() []error }:
		all, some := true, false
		for _, inner := range e.Unwrap() {
			yes := only(inner, harmless)
			all, some = all && yes, some || yes
		}
		if joined(err) {
			return all
		}
		var disk *ourotail.DiskError
		return some && !errors.Is(err, store.ErrDamaged) && !errors.As(err, &disk)
	}
	return false
}

func said(before []error, err error) bool {
	for _, b := range before {
		if errors.Is(b, err) {
			return true
		}
	}
	return false
}
