package costs

// A Network is what the slowest of the nodes gets.
type Network struct {
	Bandwidth float64 // bytes per second that a node receives
	RoundTrip float64 // seconds of the smallest question
}

// Usual is a typical network, for where nothing is measured.
var Usual = Network{Bandwidth: 1e9, RoundTrip: 1e-4}

// Seconds returns the time of so many bytes in so many round trips.
func (n Network) Seconds(bytes, trips float64) float64 { return bytes/n.Bandwidth + trips*n.RoundTrip }
