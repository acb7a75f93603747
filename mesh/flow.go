package mesh

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// progressTimeout bounds how long a transfer may make no progress. Its total time
	// is not bounded: a slow link is no failure.
	progressTimeout = 10 * time.Second
	// writeChunk is how much is passed to quic-go at a time. Its Write returns only
	// when all of it is sent, so the deadline must allow for no more than this.
	writeChunk = 256 << 10
	// firstRoom is how much memory is allocated at first for a length that a peer
	// announces.
	firstRoom = 256 << 10
)

// flow reads and writes one bulk stream. It counts the bytes and bounds pauses.
type flow struct {
	stream *quic.Stream
	meter  *Meter
	kind   Kind
	copies bool // parts are copied before they are written

	readUntil, writeUntil time.Time
	scratch               [2048]byte // for headers, and small questions whole
}

var flows = sync.Pool{New: func() any { return new(flow) }}

// newFlow returns a flow. The caller ends it with release.
func newFlow(s *quic.Stream, m *Meter, k Kind) *flow {
	f := flows.Get().(*flow)
	f.stream, f.meter, f.kind, f.copies = s, m, k, false
	f.readUntil, f.writeUntil = time.Time{}, time.Time{}
	return f
}

func (f *flow) release() {
	f.stream, f.meter = nil, nil
	flows.Put(f)
}

// await waits up to patience for the first bytes of dst and returns how many came.
func (f *flow) await(dst []byte, patience time.Duration) (int, error) {
	_ = f.stream.SetReadDeadline(time.Now().Add(patience))
	f.readUntil = time.Time{} // later reads have a deadline of their own
	n, err := f.stream.Read(dst)
	f.meter.received(f.kind, n)
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, io.ErrUnexpectedEOF
	}
	return 0, err
}

// read fills dst. An early end is io.ErrUnexpectedEOF, never a short success.
func (f *flow) read(dst []byte) error {
	for len(dst) > 0 {
		if now := time.Now(); f.readUntil.Sub(now) < progressTimeout/2 {
			f.readUntil = now.Add(progressTimeout)
			_ = f.stream.SetReadDeadline(f.readUntil)
		}
		n, err := f.stream.Read(dst)
		f.meter.received(f.kind, n)
		dst = dst[n:]
		if err != nil && len(dst) > 0 {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// take reads n bytes, into into if it has room, else into new memory that grows as they
// arrive.
func (f *flow) take(into []byte, n int) ([]byte, error) {
	if n <= cap(into) {
		into = into[:n]
		return into, f.read(into)
	}
	b := into[:0]
	if cap(b) < firstRoom {
		b = make([]byte, 0, min(n, firstRoom))
	}
	for len(b) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, 2*cap(b))), b...)
		}
		if err := f.read(b[len(b):cap(b)]); err != nil {
			return nil, err
		}
		b = b[:cap(b)]
	}
	return b, nil
}

func (f *flow) write(src []byte) error {
	for len(src) > 0 {
		now := time.Now()
		if f.writeUntil.Sub(now) < progressTimeout/2 {
			f.writeUntil = now.Add(progressTimeout)
			_ = f.stream.SetWriteDeadline(f.writeUntil)
		}
		n, err := f.stream.Write(src[:min(len(src), writeChunk)])
		f.meter.sent(f.kind, n)
		src = src[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends what was written, unless that has failed.
func (f *flow) close(err error) error {
	if err == nil {
		// Close fails if the peer has all that it needs, and reads no more. Who waits for what
		// was written learns of any other problem of the stream.
		_ = f.stream.Close()
		return nil
	}
	// A peer that stops reading without an error has answered, if only to refuse, or has the
	// whole answer.
	if stopped, ok := errors.AsType[*quic.StreamError](err); ok && stopped.Remote && Code(stopped.ErrorCode) == CodeDone {
		return nil
	}
	return err
}

// few is how many parts are written one by one, however small they are.
const few = 8

// joints are what many parts are joined in.
var joints = sync.Pool{New: func() any { return new([writeChunk]byte) }}

// writeAll writes parts one after the other. Many small ones are joined in chunks, since each
// write waits until it is sent.
func (f *flow) writeAll(parts [][]byte) error {
	if len(parts) <= few && !f.copies {
		for _, p := range parts {
			if err := f.write(p); err != nil {
				return err
			}
		}
		return nil
	}
	chunk := joints.Get().(*[writeChunk]byte)
	defer joints.Put(chunk)
	n := 0
	for _, p := range parts {
		if n+len(p) > len(chunk) {
			if err := f.write(chunk[:n]); err != nil {
				return err
			}
			n = 0
		}
		for f.copies && len(p) > len(chunk) {
			if err := f.write(chunk[:copy(chunk[:], p)]); err != nil {
				return err
			}
			p = p[len(chunk):]
		}
		if len(p) > len(chunk) {
			if err := f.write(p); err != nil {
				return err
			}
			continue
		}
		n += copy(chunk[n:], p)
	}
	return f.write(chunk[:n])
}
