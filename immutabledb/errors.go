package immutabledb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What can be wrong with a folder. Every error of this package but those of
// the parsers, a context's and io.EOF is an *Error that wraps one of these.
var (
	ErrMissing = errors.New("there is no such folder")
	ErrRead    = errors.New("it cannot be read")
	ErrEmpty   = errors.New("the folder holds no chunk of an ImmutableDB")
	ErrDamaged = errors.New("the files are damaged")
	ErrNotOurs = errors.New("the files are of another chain")
	ErrUsage   = errors.New("not possible now")
)

// Error is what went wrong, where in the folder, and what can be done.
type Error struct {
	Dir    string
	File   string // in the folder; empty for the whole of it
	Offset int64  // in the file; -1 if it is about the whole file
	Kind   error  // one of the Err values of this package
	Cause  error  // or nil
	Hint   string // or empty
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ImmutableDB %s: %v", e.Dir, e.Kind)
	if e.File != "" {
		fmt.Fprintf(&b, ": %s", e.File)
		if e.Offset >= 0 {
			fmt.Fprintf(&b, " at offset %d", e.Offset)
		}
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n  hint: %s", e.Hint)
	}
	return b.String()
}

// Unwrap gives errors.Is and errors.As both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Hints.
const (
	hintDamaged = "the node that owns the files repairs them when it starts; without --immutable everything comes over its socket"
	hintNotOurs = "is this the folder of the node that is followed, on the right network?"
	hintFolder  = "the folder is called immutable and lies in the node's --database-path"
)

// unreadable is what the system said about a file or the folder.
func (f *Folder) unreadable(file string, err error) error {
	e := &Error{Dir: f.dir, File: file, Offset: -1, Kind: ErrRead, Cause: err}
	var path *fs.PathError
	if errors.As(err, &path) {
		e.Cause = path.Err // its path is in e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && file == "":
		e.Kind, e.Cause, e.Hint = ErrMissing, nil, hintFolder
	case errors.Is(err, fs.ErrPermission):
		e.Hint = fmt.Sprintf("user id %d may not read it; run as the node's user or join its group", os.Getuid())
	}
	return e
}

// empty tells where the chunks are if they are not far.
func (f *Folder) empty() error {
	e := &Error{Dir: f.dir, Offset: -1, Kind: ErrEmpty, Hint: hintFolder}
	inner := filepath.Join(f.dir, "immutable")
	if m, _ := filepath.Glob(filepath.Join(inner, "*.chunk")); len(m) > 0 {
		e.Hint = "it is in " + inner
	}
	return e
}

// damaged names a place in a file of a chunk; at is -1 for the whole file.
func (f *Folder) damaged(chunk int, kind string, at int64, format string, args ...any) error {
	return &Error{Dir: f.dir, File: name(chunk, kind), Offset: at, Kind: ErrDamaged, Cause: fmt.Errorf(format, args...), Hint: hintDamaged}
}
