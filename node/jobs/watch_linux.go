package jobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// A watch notices that files in a folder are written, replaced or removed. To ask it costs one
// system call, however many files there are.
type watch struct {
	files map[string]bool // by name: others are of no interest

	mu     sync.Mutex
	fd     int
	closed bool
	dirty  bool // something has changed since seen was called
}

const watched = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// newWatch watches files in a folder until close. What is there already counts as changed.
func newWatch(folder string, files map[string]bool) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch the folder of a dataset: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, folder, watched); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the folder of a dataset: %w", err), unix.Close(fd))
	}
	return &watch{files: files, fd: fd, dirty: true}, nil
}

// changed reports whether anything may have changed since seen was called. On nil, it may.
func (w *watch) changed() bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	return w.dirty
}

// seen notes that what has changed up to now is about to be looked at.
func (w *watch) seen() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	w.dirty = false
}

// again takes seen back: what was looked at is not as it should be.
func (w *watch) again() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true
}

// drain reads all events. Called with mu held.
func (w *watch) drain() {
	var buf [4096]byte
	for !w.closed {
		n, err := unix.Read(w.fd, buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n <= 0:
			w.dirty = true
			return
		default:
			w.dirty = w.dirty || w.concerns(buf[:n])
		}
	}
	w.dirty = true
}

// concerns reports whether events are about the files, or about the folder itself.
func (w *watch) concerns(events []byte) bool {
	const named = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	for len(events) >= unix.SizeofInotifyEvent {
		mask, length := binary.NativeEndian.Uint32(events[4:]), int(binary.NativeEndian.Uint32(events[12:]))
		events = events[unix.SizeofInotifyEvent:]
		name, _, _ := bytes.Cut(events[:length], []byte{0})
		if mask&named == 0 || w.files[string(name)] {
			return true
		}
		events = events[length:]
	}
	return false
}

// close ends the watch.
func (w *watch) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		_ = unix.Close(w.fd) // it was only read
	}
}
