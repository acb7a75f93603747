package tensor

// Foreign is a device whose memory is not the host's: its matrices have no slices of
// elements, and only its operations may access them. Slices and CSRs passed to operations
// are in host memory; they have been copied when the operation returns. The X of a Part
// is in device memory.
//
// Several goroutines may use it at once, each through its own lane. Lanes share memory. A
// lane's operations run in order; operations of different lanes are ordered only by
// marks.
type Foreign interface {
	Device
	// Err returns the first error: after it, operations do nothing and their results are
	// meaningless. It waits for pending operations.
	Err() error
	// Lane returns another lane, for another goroutine. It must be closed before the
	// device.
	Lane() (Foreign, error)
	// HostArena is NewArena for host memory from which Bring copies without an
	// intermediate copy. It is used like the arena of a device in host memory.
	HostArena(bytes int) (Arena, error)
	// Bring copies from, which lies in a host arena, to the device unchanged, without
	// waiting: from must not change until a later mark has passed.
	Bring(to, from Matrix)
	NewMark() (Mark, error)
	// Mark moves m behind everything that the lane has been given.
	Mark(m Mark)
	// After makes later operations of this lane wait for m as it was last marked; an
	// unmarked m has no effect. An error in the lane of the mark up to then is an error
	// of this lane, too.
	After(m Mark)
}

// A Mark is a point in a lane's sequence of operations. It is not safe for concurrent
// use.
type Mark interface{ Close() }

// A Teller is a Foreign that defers results, so that several are waited for once.
type Teller interface {
	Foreign
	// Ask begins deferring: until Told, losses add up instead of being returned, and
	// Finite returns true.
	Ask()
	// Told ends that and waits. It returns the sum of the losses, the number of correct
	// rows, and whether everything passed to Finite was finite.
	Told() (loss float64, right int, finite bool)
}
