package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/ourotail/ourotail/internal/disk"
)

// Files are the files of one folder. One goroutine writes (Batch, Keep, Drop,
// Remove, Close); any number read through a View. What was written once is never
// written over.
type Files struct {
	dir  string
	max  int64
	sync bool

	current uint32 // number of the newest file
	size    int64  // of it, as far as it is written
	grows   bool   // what comes goes into it
	refs    map[uint32]int

	view atomic.Pointer[View]
}

// View is the files as they were when it was taken. A file that is removed later
// can still be read through it; the garbage collector closes it.
type View struct {
	dir   string
	files map[uint32]*os.File
}

// Open opens the files of a folder; places are all that are wanted. It returns a
// *DamagedError if a file is gone or too short; the bytes themselves are not read.
// A file grows to limit bytes or a little more. Nothing is synced where sync is
// false.
func Open(dir string, places iter.Seq[Place], limit int64, sync bool) (_ *Files, err error) {
	sizes, err := List(dir)
	if err != nil {
		return nil, err
	}
	f := &Files{dir: dir, max: limit, sync: sync, refs: map[uint32]int{}}
	end := int64(0) // of what is wanted of the newest
	for n := range sizes {
		f.current = max(f.current, n)
	}
	for p := range places {
		if p.Size == 0 {
			continue
		}
		size, there := sizes[p.File]
		switch {
		case !there:
			return nil, damaged(dir, p, "are gone: there is no such file")
		case p.end() > size:
			return nil, damaged(dir, p, fmt.Sprintf("are gone: the file ends at %d", size))
		}
		f.refs[p.File]++
		if p.File == f.current {
			end = max(end, p.end())
		}
	}
	f.size = sizes[f.current]
	f.grows = f.size > 0 && f.size == end // what a kill left behind it stays as it is
	v, err := open(dir, sizes, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	f.view.Store(v)
	return f, nil
}

// ReadOnly opens all files of a folder for reading; they are not changed.
func ReadOnly(dir string) (*View, error) {
	sizes, err := List(dir)
	if err != nil {
		return nil, err
	}
	return open(dir, sizes, os.O_RDONLY)
}

func open(dir string, sizes map[uint32]int64, mode int) (*View, error) {
	v := &View{dir: dir, files: map[uint32]*os.File{}}
	for n := range sizes {
		file, err := os.OpenFile(filepath.Join(dir, Name(n)), mode, 0)
		if err != nil {
			return nil, errors.Join(err, v.Close())
		}
		v.files[n] = file
	}
	return v, nil
}

// View returns the files as they are now. It may be called from any goroutine.
func (f *Files) View() *View { return f.view.Load() }

// Keep counts one more wanted place.
func (f *Files) Keep(p Place) {
	if p.Size > 0 {
		f.refs[p.File]++
	}
}

// Drop counts one less.
func (f *Files) Drop(p Place) {
	if p.Size > 0 {
		f.refs[p.File]--
	}
}

// Unwanted returns the files of which nothing is wanted, but for the one that
// grows.
func (f *Files) Unwanted() (files []uint32) {
	for n := range f.View().files {
		if f.refs[n] <= 0 && (n != f.current || !f.grows) {
			files = append(files, n)
		}
	}
	return files
}

// Remove removes a file. Views that have it can still read it.
func (f *Files) Remove(n uint32) error {
	delete(f.refs, n)
	v := &View{dir: f.dir, files: maps.Clone(f.View().files)}
	delete(v.files, n)
	f.view.Store(v)
	if err := os.Remove(filepath.Join(f.dir, Name(n))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// begin starts a new file.
func (f *Files) begin() error {
	n := f.current + 1
	file, err := os.OpenFile(filepath.Join(f.dir, Name(n)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if f.sync {
		if err := disk.SyncDir(f.dir); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	v := &View{dir: f.dir, files: maps.Clone(f.View().files)}
	v.files[n] = file
	f.view.Store(v)
	f.current, f.size, f.grows = n, 0, true
	return nil
}

// Close closes the files; views that are left become unreadable.
func (f *Files) Close() error { return f.View().Close() }

// Close closes the files of a view that ReadOnly made.
func (v *View) Close() error {
	var errs []error
	for _, file := range v.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// Read appends the bytes at a place to dst. It returns a
// *DamagedError if they are not there or not what they were.
func (v *View) Read(p Place, dst []byte) ([]byte, error) {
	if p.Size == 0 {
		return dst, nil
	}
	file := v.files[p.File]
	if file == nil {
		return dst, damaged(v.dir, p, "are gone: there is no such file")
	}
	if info, err := file.Stat(); err != nil {
		return dst, err
	} else if p.end() > info.Size() { // before memory is asked for
		return dst, damaged(v.dir, p, "are gone")
	}
	at := len(dst)
	dst = append(dst, make([]byte, p.Size)...)
	if _, err := file.ReadAt(dst[at:], int64(p.Offset)); err != nil {
		return dst[:at], fmt.Errorf("read %s: %w", filepath.Join(v.dir, Name(p.File)), err)
	}
	if !p.Is(dst[at:]) {
		return dst[:at], damaged(v.dir, p, "are not what was written")
	}
	return dst, nil
}
