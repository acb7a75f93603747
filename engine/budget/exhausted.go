package budget

import "fmt"

// Exhausted is the error of an arena that gets no memory from the system. Where arenas
// grow there is no way to return it, so they panic with it.
type Exhausted struct {
	Wants uint64 // bytes
	Holds uint64 // bytes that the arena has already
	Err   error
}

func (e *Exhausted) Error() string {
	return fmt.Sprintf("the system gives no %s of memory to an arena that holds %s (%v): take smaller batches, a smaller model or more nodes, or raise the process's limit",
		Format(e.Wants), Format(e.Holds), e.Err)
}

func (e *Exhausted) Unwrap() error { return e.Err }

// Caught sets an error if a panic with an *Exhausted is under way, and ends that. It is to
// be deferred, wherever a goroutine computes with arenas that may grow.
func Caught(err *error) {
	switch fault := recover().(type) {
	case nil:
	case *Exhausted:
		*err = fault
	default:
		panic(fault)
	}
}
