package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of a line. A row of features may have very many columns.
const (
	MaxLine         = 64 << 10
	MaxFeaturesLine = 64 << 20
)

// chunkSize is how much is read at a time.
const chunkSize = 1 << 20

// Lines reads a file of lines, compressed by gzip or not. A goroutine reads ahead; Close
// waits for it.
type Lines struct {
	Name   string // for sentences
	most   int    // bytes a line may have
	Cur    []byte
	Last   bool   // nothing follows Cur
	Line   uint64 // of the first byte of Cur, from 1
	from   io.Reader
	close  func() error  // of a file that was opened here; may be nil
	read   atomic.Uint64 // bytes of the file
	full   chan chunk
	free   chan []byte
	cancel context.CancelFunc
	done   sync.WaitGroup
	report func(uint64)
}

// A chunk holds whole lines. The last one comes with io.EOF or another error, and need
// not end with a line's end.
type chunk struct {
	bytes []byte
	err   error
}

var (
	errLongLine = errors.New("line too long")
	errUTF16    = errors.New("text in UTF-16")
)

// OpenLines opens a file of this machine whose lines have up to most bytes. report is
// called with the bytes of the file that have been read; it may be nil.
func OpenLines(ctx context.Context, path string, most int, report func(uint64)) (*Lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := NewLines(ctx, filepath.Base(path), f, most, report)
	l.close = f.Close
	return l, nil
}

// NewLines is OpenLines for a reader that is open. A name that ends in .gz means that it is packed.
func NewLines(ctx context.Context, name string, from io.Reader, most int, report func(uint64)) *Lines {
	ctx, cancel := context.WithCancel(ctx)
	l := &Lines{Name: name, most: most, Line: 1, from: from, full: make(chan chunk, 1), free: make(chan []byte, 3), cancel: cancel, report: report}
	for range cap(l.free) {
		l.free <- nil
	}
	l.done.Go(func() { l.readAhead(ctx, strings.HasSuffix(strings.ToLower(name), ".gz")) })
	return l
}

// Close ends the reading ahead.
func (l *Lines) Close() {
	l.cancel()
	l.done.Wait()
	if l.close != nil {
		_ = l.close() // it was only read
	}
}

// Fill appends the next lines to what is left in Cur, which moves. It returns io.EOF
// when there are none.
func (l *Lines) Fill(ctx context.Context) error {
	if l.Last {
		return io.EOF
	}
	var c chunk
	select {
	case c = <-l.full:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.report != nil {
		l.report(l.read.Load())
	}
	l.Last = errors.Is(c.err, io.EOF)
	if c.err != nil && !l.Last {
		return l.explain(c.err)
	}
	if len(l.Cur) > 0 {
		if len(l.Cur) > l.most {
			return l.TooLong()
		}
		l.Cur = append(l.Cur, c.bytes...) // its last line continues in c.bytes
		l.free <- c.bytes[:0]             // cur's own goes back when it is released
	} else {
		l.Cur = c.bytes
	}
	if len(l.Cur) == 0 {
		return io.EOF
	}
	return nil
}

// Release returns the memory of Cur, which has been read, to the goroutine that reads
// ahead.
func (l *Lines) Release(whole []byte) {
	l.Cur = nil
	select {
	case l.free <- whole[:0]:
	default:
	}
}

// TooLong is the error for a line that is longer than it may be.
func (l *Lines) TooLong() error { return l.explain(errLongLine) }

func (l *Lines) explain(err error) error {
	switch {
	case errors.Is(err, errLongLine):
		return fmt.Errorf("%s, line %d: the line is longer than %d bytes: check that it is a table of text with an end to each line and each quote", l.Name, l.Line, l.most)
	case errors.Is(err, errUTF16):
		return fmt.Errorf("%s is text in UTF-16: save it as UTF-8", l.Name)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s ends in the middle of its compressed data: copy it again", l.Name)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.HasPrefix(err.Error(), "flate:"):
		return fmt.Errorf("%s is not an intact gzip file (%w): pack it or copy it again", l.Name, err)
	}
	return fmt.Errorf("read %s: %w", l.Name, err)
}

// Read reads from the file and counts the bytes.
func (l *Lines) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	l.read.Add(uint64(n))
	return n, err
}

func (l *Lines) readAhead(ctx context.Context, packed bool) {
	var r io.Reader = l
	var err error
	if packed {
		if r, err = gzip.NewReader(l); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	var rest []byte
	for first := true; err == nil; first = false {
		var buf []byte
		select {
		case buf = <-l.free:
		case <-ctx.Done():
			return
		}
		buf = append(buf[:0], rest...)
		end := 0
		for err == nil && end == 0 {
			was := len(buf) // rest holds no line's end
			buf, err = readMore(r, buf)
			if at := bytes.LastIndexByte(buf[was:], '\n'); at >= 0 {
				end = was + at + 1
			} else if err == nil && len(buf) > l.most {
				err = errLongLine
			}
		}
		if first {
			if bytes.HasPrefix(buf, []byte{0xff, 0xfe}) || bytes.HasPrefix(buf, []byte{0xfe, 0xff}) {
				err = errUTF16
			}
			if bytes.HasPrefix(buf, []byte("\xef\xbb\xbf")) {
				buf, end = buf[3:], max(end-3, 0)
			}
		}
		if err == nil {
			rest = buf[end:] // it is copied before anything is written there
			buf = buf[:end]
		}
		select {
		case l.full <- chunk{buf, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
	select {
	case l.full <- chunk{nil, err}:
	case <-ctx.Done():
	}
}

// readMore reads a chunk behind buf. It returns io.EOF with the last one.
func readMore(r io.Reader, buf []byte) ([]byte, error) {
	was := len(buf)
	if cap(buf)-was < chunkSize {
		buf = append(make([]byte, 0, max(was+chunkSize+4096, 2*was)), buf...)
	}
	n := 0
	for n < chunkSize {
		got, err := r.Read(buf[was+n : was+chunkSize])
		n += got
		if err != nil {
			return buf[:was+n], err
		}
	}
	return buf[:was+n], nil
}

// EachLine yields the lines that are not blank. They are valid until yield returns.
func EachLine(ctx context.Context, l *Lines, yield func(line uint64, text []byte) error) error {
	for {
		switch err := l.Fill(ctx); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		all := l.Cur
		for len(l.Cur) > 0 {
			text, n := CutLine(l.Cur)
			if len(text) > l.most {
				return l.TooLong()
			}
			if len(Trim(text)) > 0 {
				if err := yield(l.Line, text); err != nil {
					return err
				}
			}
			l.Cur = l.Cur[n:]
			l.Line++
		}
		l.Release(all)
	}
}

// CutLine returns the first line of b without its end, and its length with it.
func CutLine(b []byte) ([]byte, int) {
	at := bytes.IndexByte(b, '\n')
	if at < 0 {
		return bytes.TrimSuffix(b, []byte{'\r'}), len(b)
	}
	return bytes.TrimSuffix(b[:at], []byte{'\r'}), at + 1
}
