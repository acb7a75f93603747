package build

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/direct"
	"github.com/hopmesh/hopmesh/engine/graph/quicksum"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// An output is a shard file being written. It is not safe for concurrent use.
type output struct {
	file   *os.File
	direct direct.Writer
	disk   disk
	layout *safetensors.Layout
	place  map[string]int64 // offset of each tensor in the file
	hash   *quicksum.Hash
	// at is the offset of the next write. The hash covers the bytes before hashed. A
	// write before hashed invalidates the hash.
	at, hashed int64
	rehash     bool
}

func newOutput(d disk, shard int) (*output, error) {
	file, err := os.OpenFile(filepath.Join(d.folder, graph.ShardFile(shard)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a shard file: %w", err)
	}
	return &output{file: file, direct: direct.Open(file.Name()), disk: d, hash: quicksum.New()}, nil
}

// lay computes the layout of the file.
func (o *output) lay(tensors []safetensors.Tensor, metadata map[string]string) (err error) {
	if o.layout, err = safetensors.NewLayout(tensors, metadata); err != nil {
		return fmt.Errorf("lay out a shard file: %w", err)
	}
	o.place = make(map[string]int64, len(tensors))
	for i, t := range tensors {
		o.place[t.Name] = o.layout.Offset(i)
	}
	return nil
}

// next writes after the last write.
func (o *output) next(b []byte) error {
	err := o.writeAt(b, o.at)
	o.at += int64(len(b))
	return err
}

// writeAt writes at any offset. Bytes never written read as zero.
func (o *output) writeAt(b []byte, at int64) error {
	if !o.direct.WriteAt(b, at) {
		if _, err := o.file.WriteAt(b, at); err != nil {
			return o.disk.failed(err)
		}
		startWriting(o.file, at, len(b))
	}
	if at < o.hashed {
		o.rehash = true
	}
	if !o.rehash {
		o.hashZeros(at)
		_, _ = o.hash.Write(b)
		o.hashed += int64(len(b))
	}
	return nil
}

func (o *output) hashZeros(to int64) {
	var zeros [4096]byte
	for o.hashed < to {
		n := min(to-o.hashed, int64(len(zeros)))
		_, _ = o.hash.Write(zeros[:n])
		o.hashed += n
	}
}

// finish makes the file durable, closes it and returns its digest.
func (o *output) finish(buf []byte) (string, error) {
	size := o.layout.Size()
	if err := o.file.Truncate(size); err != nil { // rows at the end may be missing
		return "", o.disk.failed(err)
	}
	if o.rehash {
		o.hash.Reset()
		if _, err := io.CopyBuffer(struct{ io.Writer }{o.hash}, io.NewSectionReader(o.file, 0, size), buf); err != nil {
			return "", fmt.Errorf("read a shard file again: %w", err)
		}
	} else {
		o.hashZeros(size)
	}
	if err := o.file.Sync(); err != nil {
		return "", o.disk.failed(err)
	}
	o.direct.Close()
	path, err := o.file.Name(), o.file.Close()
	o.file = nil
	if err != nil {
		return "", o.disk.failed(err)
	}
	digest, quick := o.hash.Digest()
	quick.Mark(path, digest) // so that the first job need not compute the SHA-256 again
	return digest, nil
}

// drop closes a file that will not be finished.
func (o *output) drop() {
	if o != nil && o.file != nil {
		o.direct.Close()
		o.file.Close() // it is removed with its folder
	}
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync a folder: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("sync the folder %s: %w", path, err)
	}
	return nil
}
