package tensor

// Foreign is a device whose memory is not the host's: its matrices have no slices of
// elements, and nothing but its operations may look at them. What operations are given
// as slices and CSRs is the host's; they have copied it when they return. The X of a Part
// is the device's.
//
// Several goroutines use it at once, each by a lane of its own: the memory is the same,
// and each lane's operations are done in its order, and in no order with those of other
// lanes but that of marks.
type Foreign interface {
	Device
	// Err is the first thing that went wrong: from then on operations do nothing, and
	// what they return means nothing. It waits for what is under way.
	Err() error
	// Lane is another one, for another goroutine. It is closed before the device.
	Lane() (Foreign, error)
	// HostArena is as NewArena, of the host's memory: what lies there is brought over
	// without another copy. It is used as that of a device whose memory is the host's.
	HostArena(bytes int) (Arena, error)
	// Bring copies from, which lies in a host arena, to the device as it is, and waits
	// for nothing: from stays as it is until a mark behind that has been passed.
	Bring(to, from Matrix)
	NewMark() (Mark, error)
	// Mark puts m behind all that the lane has been given, in place of where it was.
	Mark(m Mark)
	// After has what the lane is given from now on begin after m, as it was marked last;
	// one that never was is no matter. What had gone wrong by then in the lane of the
	// mark has gone wrong in this one, too.
	After(m Mark)
}

// A Mark is a point in what a lane does. One goroutine at a time uses it.
type Mark interface{ Close() }

// A Teller is a Foreign that can be asked about much and waited for once.
type Teller interface {
	Foreign
	// Ask says that answers are wanted later: from now on losses add up, in place of being
	// returned, and Finite says that all is.
	Ask()
	// Told ends that, and waits: for the sum of the losses, how many rows were right, and
	// whether all was finite that Finite was asked about.
	Told() (loss float64, right int, finite bool)
}
