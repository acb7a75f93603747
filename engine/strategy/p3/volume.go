package p3

import (
	"slices"

	"github.com/hopmesh/hopmesh/engine/forecast"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/peer"
)

// Volume returns what a step sends: partial sums of the first layer and their errors, the
// gradients of its weights by rows, and a sum of all other gradients. Blocks travel ahead
// where nodes do not draw those of all. Columns of features travel once in a job.
func Volume(s *forecast.Step) forecast.Volume {
	v := forecast.Volume{Rounds: 3} // of partial sums, errors and weights
	front, err := s.Model.Front()
	if err != nil || s.Nodes == 1 {
		return v // refused by Check
	}
	width, rows := 0, 0 // columns of all weights of the front, and its weights
	for _, t := range front.Terms {
		width, rows = width+t.Param.Cols, rows+t.Param.Rows*t.Param.Cols
	}
	shares := make([]int, s.Nodes)
	for node := range shares {
		shares[node] = share(s.Columns, node, s.Nodes).cols
	}
	ahead, waiting, first := newTraffic(s.Nodes), newTraffic(s.Nodes), newTraffic(s.Nodes)
	settings := Of(s.Settings)
	for node := range shares {
		for other := range shares {
			if other == node {
				continue
			}
			mine, theirs := &s.Loads[node], &s.Loads[other]
			if rows := height(nn.Size{Targets: mine.First, Sources: mine.Inputs}, front.Sources); rows > 0 && shares[other] > 0 {
				waiting.take(peer.Activation, node, rows*front.Cols*s.Number)
			}
			if rows := height(nn.Size{Targets: theirs.First, Sources: theirs.Inputs}, front.Sources); rows > 0 && shares[node] > 0 {
				waiting.take(peer.Activation, node, rows*front.Cols*s.Number)
			}
			if shares[other] > 0 {
				waiting.take(peer.Model, node, shares[other]*width*s.Number)
			}
			if settings.Pushed() || s.Sharded {
				ahead.take(peer.Topology, node, headSize)
				if theirs.Groups > 0 && shares[node] > 0 {
					values := 0
					if s.Valued {
						values = theirs.Edges
					}
					ahead.take(peer.Topology, node, groupSize*theirs.Groups+4*(theirs.Inputs+theirs.First+theirs.Edges+values))
				}
			}
			if shares[node] > 0 {
				first.take(peer.Shard, node, int(float64(shares[node])/float64(s.Columns)*s.Row*float64(s.Owned[other])))
			}
		}
		ahead.add(node, s.Loads[node].Sent.Bytes[peer.Topology])
	}
	for i := range s.Loads {
		v.All.Bytes[peer.Topology] += s.Loads[i].Sent.Bytes[peer.Topology]
		v.All.Requests[peer.Topology] += s.Loads[i].Sent.Requests[peer.Topology]
	}
	v.All.Add(ahead.all)
	v.All.Add(waiting.all)
	v.Hidden, _ = ahead.most()
	v.Exposed, v.Asked = waiting.most()
	v.AddSum(s, s.Model.Size()-rows, nil)
	v.Once, _ = first.most()
	v.OnceAll = first.all
	vertices := 0
	for _, n := range s.Owned {
		vertices += n
	}
	v.Held = uint64(float64(slices.Max(shares)) / float64(s.Columns) * s.Row * float64(vertices))
	return v
}

// traffic is what nodes ask each other for.
type traffic struct {
	all   peer.Counts
	bytes []uint64 // that come to each node
	asked []int    // by each node
}

func newTraffic(nodes int) *traffic {
	return &traffic{bytes: make([]uint64, nodes), asked: make([]int, nodes)}
}

// take adds one question of a node, whose answer has so many bytes.
func (t *traffic) take(k peer.Kind, node, bytes int) {
	bytes += peer.QueryFraming + peer.AnswerFraming
	t.all.Bytes[k] += uint64(bytes)
	t.all.Requests[k]++
	t.add(node, uint64(bytes))
	t.asked[node]++
}

func (t *traffic) add(node int, bytes uint64) { t.bytes[node] += bytes }

// most returns the bytes of the node to which most come, and the questions of the node
// that asks most.
func (t *traffic) most() (bytes uint64, asked int) {
	for node := range t.bytes {
		bytes, asked = max(bytes, t.bytes[node]), max(asked, t.asked[node])
	}
	return bytes, asked
}
