package shards

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
)

// Files are recognised by their quick sums after the next start, and right after an import.

// sumUp reads a file into its sums. It returns an error if it was written meanwhile.
func sumUp(ctx context.Context, path string, to io.Writer) (as stamp, err error) {
	f, err := os.Open(path)
	if err != nil {
		return stamp{}, err
	}
	defer f.Close()
	before, err := stampOn(f)
	if err != nil {
		return stamp{}, err
	}
	b := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return stamp{}, context.Cause(ctx)
		}
		n, err := f.Read(b)
		_, _ = to.Write(b[:n]) // sums take everything
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return stamp{}, err
		}
	}
	after, err := stampOn(f)
	if err == nil && after != before {
		err = errors.New("it is being written")
	}
	return before, err
}

// Opened is a file of a shard that the caller has mapped.
type Opened interface {
	Info() fs.FileInfo
	// Stream passes what is mapped to a function, in order and in pieces.
	Stream(ctx context.Context, each func(piece []byte)) error
}

// recogniseMapped is recognise of a file that is mapped. It returns false if that is not the one at
// the path, or not all of it: it may have grown since.
func recogniseMapped(ctx context.Context, path, digest string, opened Opened) (as stamp, ok bool) {
	before, there := stampAt(path)
	want, ok := quicksum.Of(path, digest)
	if !there || !ok || !before.is(opened.Info()) || before.size != opened.Info().Size() {
		return as, false
	}
	var got quicksum.Sums
	err := opened.Stream(ctx, func(piece []byte) { _, _ = got.Write(piece) }) // sums take everything
	after, there := stampAt(path)
	return before, err == nil && got == want && there && after == before
}

// recognise reports whether a file has the sums that it had when it had this SHA-256.
func recognise(ctx context.Context, path, digest string) (as stamp, ok bool) {
	want, ok := quicksum.Of(path, digest)
	if !ok {
		return as, false
	}
	var got quicksum.Sums
	as, err := sumUp(ctx, path, &got)
	return as, err == nil && got == want
}

// mark gives a file its sums, after it was found to have this SHA-256, and returns its stamp, of
// which they change a part. Where a file can have no attributes, nothing changes.
func mark(path, digest string, s quicksum.Sums, was stamp) stamp {
	if !s.Mark(path, digest) {
		return was
	}
	now, there := stampAt(path)
	same := now
	same.changed = was.changed
	if !there || same != was {
		return was // it is another file, and this one's stamp will not be found again
	}
	return now
}
