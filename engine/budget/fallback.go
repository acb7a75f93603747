package budget

// A Way is how a run takes less memory and learns the same.
type Way struct {
	// Possible reports whether there is something to give up.
	Possible func() bool
	// Take gives up about as much as saves so many bytes, or all there is. It returns the
	// sentence that tells users of all that was given up in this way. It is called again
	// where that was too little.
	Take func(bytes uint64) (said string, err error)
}

// FallBack takes ways, one after the other, until a run needs no more than there is, or no
// way is left. It returns what was given up. needs finds what the run needs as it is now.
func FallBack(has uint64, needs func() (uint64, error), ways ...Way) (said []string, err error) {
	n, err := needs()
	for _, w := range ways {
		s := ""
		for err == nil && n > has && w.Possible() {
			if s, err = w.Take(n - has); err == nil {
				n, err = needs()
			}
		}
		if s != "" {
			said = append(said, s)
		}
	}
	return said, err
}
