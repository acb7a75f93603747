package pipe

import (
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A Network is what nodes give each other.
type Network struct {
	Bandwidth float64 // bytes a second that come to a node
	RoundTrip float64 // seconds that the smallest question takes
	// Byte and Piece are for how long each of both ends is kept from computing by a byte, and
	// by a piece whatever it has.
	Byte, Piece float64
}

// handling is for how long what a node gives and takes keeps it from computing.
func (n *Network) handling(bytes, pieces float64) float64 {
	return n.Byte*bytes + n.Piece*pieces
}

// Usual is a network that is like many, where nothing is measured.
var Usual = Network{Bandwidth: 1e9, RoundTrip: 1e-4}

// halo is how long ways wait for the rows, or the gradients, that they bring each other of a
// layer, and take to bring them: what they need not wait with hides some of it.
func (d *draft) halo(stage, s, position, direction int, compute float64) float64 {
	if s == 0 || d.infos[s].Hops == 0 || d.shape.Ways() == 1 {
		return 0
	}
	width, worst, moved, bytes, pieces := float64(d.infos[s].In), 0.0, 0.0, 0.0, 0.0
	p := &d.Settings.Pipe
	share := 1.0
	if p.HaloOf() == strategy.RowsSampled {
		share = p.ShareOf()
	}
	nodes := make([]moves, d.Layout.Nodes)
	for to := range d.shape.Ways() {
		for from := range d.shape.Ways() {
			if to == from {
				continue
			}
			gives, takes := d.seats.Node(stage, from), d.seats.Node(stage, to)
			if direction == backwards {
				gives, takes = takes, gives
			}
			first, end := d.mirrors.from(to, from, position)
			if first == end {
				continue
			}
			rows := share * float64(end-first) * width
			const read, written = 2, 3 // gathered and read; written, cleared and added
			nodes[gives].numbers += read * rows
			nodes[takes].numbers += written * rows
			if bytes := rows * float64(d.Number); gives != takes {
				pieces := d.pieces(bytes, direction)
				nodes[gives].bytes, nodes[gives].pieces = nodes[gives].bytes+bytes, nodes[gives].pieces+pieces
				nodes[takes].bytes, nodes[takes].pieces = nodes[takes].bytes+bytes, nodes[takes].pieces+pieces
				nodes[takes].in += bytes
			}
		}
	}
	for _, n := range nodes {
		worst, moved, bytes, pieces = max(worst, n.in), max(moved, n.numbers), max(bytes, n.bytes), max(pieces, n.pieces)
	}
	took, hidden := moved*d.Costs.Row, d.hides[position]*compute
	if p.HaloOf() == strategy.RowsPrevious {
		hidden = 2 * compute // of the layers before, too
	}
	if d.apart {
		hidden = 0
	}
	if worst > 0 {
		// What keeps from computing is not hidden by that. Bytes that are under way are
		// handled meanwhile; a network that was measured by few pieces says nothing of many.
		took += d.Network.handling(0, pieces) + max(d.Network.handling(bytes, 0), worst/d.Network.Bandwidth+d.Network.RoundTrip-hidden)
	}
	if p.HaloOf() == strategy.RowsSkip {
		took /= float64(p.AgeOf() + 1)
	}
	return took
}

// moves are what a node gives and takes of a layer: numbers that it moves, bytes that come
// to it, and bytes and pieces that it gives or takes.
type moves struct{ numbers, in, bytes, pieces float64 }

// pieces is how many so many bytes of rows go in: forward, as shards are computed.
func (d *draft) pieces(bytes float64, direction int) float64 {
	if direction == backwards {
		return 1
	}
	return min(mostPieces, max(1, bytes/float64(pieceBytes)))
}

// edge is how long the rows of a position take between a stage and the next, and how long
// each of the two takes to hand them over.
func (d *draft) edge(next, position int) (travels, handed float64) {
	info := &d.infos[d.cuts[next]]
	most, trips := 0, 0
	for _, node := range d.seats.Members(next) {
		rows, ways := 0, 0
		for way := range d.shape.Ways() {
			if d.seats.Node(next, way) == node {
				first, end := d.shape.Vertices(way, position)
				rows, ways = rows+int(end-first), ways+1
			}
		}
		most, trips = max(most, rows), max(trips, ways)
	}
	numbers := float64(most * (info.In + info.CarryIn))
	bytes := numbers * float64(d.Number)
	return float64(trips)*d.Network.RoundTrip + bytes/d.Network.Bandwidth, numbers*d.Costs.Row + d.Network.handling(bytes, float64(trips))
}
