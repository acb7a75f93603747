// Package mapped reads files that are mapped into memory without dying of them: a file that
// is cut short while it is mapped, or a disk that fails beneath it, is a panic of the
// goroutine that reads, and not the end of the process.
//
// Whoever reads mapped files in a goroutine calls Guard there, and Caught or Group make an
// error or a panic of whoever waits of what it meets.
package mapped

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Mapping is memory in which a file is mapped.
type Mapping struct {
	path   string
	memory []byte
	broken atomic.Bool
}

var (
	mu  sync.Mutex
	all = map[*Mapping]bool{}
)

// Add notes that a file is mapped, until Remove.
func Add(path string, memory []byte) *Mapping {
	m := &Mapping{path: path, memory: memory}
	mu.Lock()
	defer mu.Unlock()
	all[m] = true
	return m
}

// Remove forgets the mapping, which is about to end. It does nothing on nil.
func (m *Mapping) Remove() {
	mu.Lock()
	defer mu.Unlock()
	delete(all, m)
}

// Broken reports whether reading it has failed; of nil, that it has not.
func (m *Mapping) Broken() bool { return m != nil && m.broken.Load() }

// holds reports whether an address lies in the mapping.
func (m *Mapping) holds(address uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.memory)))
	return address >= start && address-start < uintptr(len(m.memory))
}

// Guard makes reads of mapped files that fail panics of this goroutine, until End is called
// there with what Guard returned.
func Guard() (before bool) { return debug.SetPanicOnFault(true) }

// End takes a Guard back.
func End(before bool) { debug.SetPanicOnFault(before) }

// ErrUnreadable marks the error of a mapped file that can't be read.
var ErrUnreadable = errors.New("it was cut short while it was in use, or its disk fails")

// Unreadable returns what a panic says of a mapped file: the error names it. It notes that the
// mapping is broken. nil: the panic is about something else.
func Unreadable(panicked any) error {
	fault, is := panicked.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !is {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	for m := range all {
		if m.holds(fault.Addr()) {
			m.broken.Store(true)
			return fmt.Errorf("read %s: %w", m.path, ErrUnreadable)
		}
	}
	return nil
}

// Caught makes an error of a panic that is under way, if a mapped file could not be read, and
// ends that. It is to be deferred.
func Caught(err *error) {
	fault := recover()
	if fault == nil {
		return
	}
	unreadable := Unreadable(fault)
	if unreadable == nil {
		panic(fault)
	}
	*err = unreadable
}

// A Fault is the error of a goroutine that has panicked with a runtime.Error: where a mapped
// file holds nonsense, an index may be out of its range.
type Fault struct {
	Panicked any
	Stack    string
}

func (e *Fault) Error() string {
	return fmt.Sprintf("a fault of hopmesh itself ended it (%v): please report it, with what the log says of it", e.Panicked)
}

// LogFault logs where a goroutine panicked if an error is its Fault. what ended because of it.
func LogFault(log *slog.Logger, what string, err error, more ...any) {
	if fault, is := errors.AsType[*Fault](err); is {
		log.Error("a fault of hopmesh itself", append(more, "ended", what, "fault", fmt.Sprint(fault.Panicked), "stack", fault.Stack)...)
	}
}

// CaughtAny is Caught that makes an error of any other runtime.Error, too.
func CaughtAny(err *error) {
	fault := recover()
	if fault == nil {
		return
	}
	if unreadable := Unreadable(fault); unreadable != nil {
		*err = unreadable
		return
	}
	if _, is := fault.(runtime.Error); !is {
		panic(fault)
	}
	*err = &Fault{fault, string(debug.Stack())}
}

// A Group is a sync.WaitGroup whose goroutines may read mapped files: a panic of one of them
// becomes that of who waits.
type Group struct {
	running sync.WaitGroup
	failed  atomic.Pointer[any]
}

// Go calls a function in a goroutine.
func (g *Group) Go(do func()) {
	g.running.Go(func() {
		defer End(Guard())
		defer func() {
			if fault := recover(); fault != nil {
				g.failed.CompareAndSwap(nil, &fault)
			}
		}()
		do()
	})
}

// Wait waits for all goroutines. If one has panicked, so does Wait.
func (g *Group) Wait() {
	g.running.Wait()
	if fault := g.failed.Swap(nil); fault != nil {
		panic(*fault)
	}
}
