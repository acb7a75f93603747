package train

import "time"

// SetStopQuiet changes how long `train stop` waits before it says what it waits for, until
// restore is called.
func SetStopQuiet(d time.Duration) (restore func()) {
	before := stopQuiet
	stopQuiet = d
	return func() { stopQuiet = before }
}
