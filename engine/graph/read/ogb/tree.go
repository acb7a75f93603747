package ogb

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/npz"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/web"
)

// A tree is where raw/ and split/ are. Names in it have slashes, whatever the machine has.
type tree interface {
	// list returns what is in a folder of it, in the order of the names; nothing if there is no
	// such folder.
	list(ctx context.Context, folder string) ([]entry, error)
	// open opens a file. ctx must last until it is closed.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	// size returns how many bytes a file has there.
	size(ctx context.Context, name string) (int64, error)
	// place returns the name by which package files opens a file; "": it can't.
	place(name string) string
	close() error
}

type entry struct {
	name   string
	folder bool
}

// treeOf returns the tree of a source: a folder, or an archive of one.
func treeOf(ctx context.Context, name string) (tree, error) {
	what, err := files.Look(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case what == files.Regular:
		return openArchive(ctx, name)
	case web.Is(name):
		return stored(name), nil
	}
	return local(name), nil
}

// local is a folder of this machine.
type local string

func (l local) place(name string) string { return filepath.Join(string(l), filepath.FromSlash(name)) }
func (local) close() error               { return nil }

func (l local) list(_ context.Context, folder string) (all []entry, err error) {
	entries, err := os.ReadDir(l.place(folder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		all = append(all, entry{e.Name(), e.IsDir()})
	}
	return all, err
}

func (l local) open(_ context.Context, name string) (io.ReadCloser, error) {
	if err := source.Regular(l.place(name)); err != nil {
		return nil, err
	}
	return os.Open(l.place(name))
}

func (l local) size(_ context.Context, name string) (int64, error) {
	info, err := os.Stat(l.place(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// stored is the address of a folder in a store.
type stored string

func (s stored) place(name string) string {
	to := string(s)
	for part := range strings.SplitSeq(name, "/") {
		if part != "" {
			to = web.Join(to, part)
		}
	}
	return to
}
func (stored) close() error { return nil }

func (s stored) list(ctx context.Context, folder string) (all []entry, err error) {
	found, err := web.List(ctx, s.place(folder))
	for _, e := range found {
		all = append(all, entry{e.Name, e.Folder})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// section reads a file from its beginning on.
type section struct {
	*io.SectionReader
	io.Closer
}

func (s stored) open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := web.Open(ctx, s.place(name))
	if err != nil {
		return nil, err
	}
	return section{io.NewSectionReader(f, 0, f.Size()), f}, nil
}

func (s stored) size(ctx context.Context, name string) (int64, error) {
	f, err := web.Open(ctx, s.place(name))
	if err != nil {
		return 0, err
	}
	return f.Size(), f.Close()
}

// An archive is a zip file, on this machine or on a server, with one such folder in it. Package zip
// compares what it reads with the sums in the archive.
type archive struct {
	file    files.File
	members map[string]*zip.File // by the name in the folder
}

// marks are the files by one of which the folder in an archive is found.
var marks = []string{"raw/edge.csv.gz", "raw/data.npz", "raw/triplet-type-list.csv.gz"}

func openArchive(ctx context.Context, name string) (*archive, error) {
	f, err := files.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	a := &archive{file: f, members: map[string]*zip.File{}}
	if err := a.read(files.Base(name)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// read finds the folder in the archive.
func (a *archive) read(name string) error {
	if a.file.Size() == 0 {
		return fmt.Errorf("%s is empty: copy it again", name)
	}
	list, err := npz.List(name, a.file, a.file.Size())
	if err != nil {
		return fmt.Errorf("%s is not a complete zip archive (%w): copy it again", name, err)
	}
	root, found := "", false
	for _, f := range list {
		for _, mark := range marks {
			folder, is := strings.CutSuffix(f.Name, mark)
			if !is || folder != "" && !strings.HasSuffix(folder, "/") {
				continue
			}
			if found && folder != root {
				return fmt.Errorf("%s has several graphs in it, in %s and %s: unpack it, and give the folder of one", name, cmp.Or(root, "/"), cmp.Or(folder, "/"))
			}
			root, found = folder, true
		}
	}
	if !found {
		return fmt.Errorf("%s has no folder with raw/edge.csv.gz or raw/data.npz in it, as the Open Graph Benchmark's archives have: unpack it, and give what is in it", name)
	}
	for _, f := range list {
		if inside, is := strings.CutPrefix(f.Name, root); is && inside != "" {
			a.members[inside] = f
		}
	}
	return nil
}

func (a *archive) list(_ context.Context, folder string) (all []entry, _ error) {
	if folder != "" {
		folder += "/"
	}
	seen := map[string]bool{}
	for name := range a.members {
		rest, is := strings.CutPrefix(name, folder)
		if first, _, deeper := strings.Cut(rest, "/"); is && first != "" && !seen[first] {
			seen[first] = true
			all = append(all, entry{first, deeper})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func (a *archive) open(_ context.Context, name string) (io.ReadCloser, error) {
	f := a.members[name]
	if f == nil {
		return nil, fmt.Errorf("the archive has no %s", path.Base(name))
	}
	return f.Open()
}

// size returns the bytes in the archive: what it says of those outside is a claim.
func (a *archive) size(_ context.Context, name string) (int64, error) {
	if f := a.members[name]; f != nil {
		return int64(min(f.CompressedSize64, uint64(a.file.Size()))), nil
	}
	return 0, nil
}

func (*archive) place(string) string { return "" }
func (a *archive) close() error      { return a.file.Close() }
