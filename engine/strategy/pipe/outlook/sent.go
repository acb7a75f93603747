package outlook

import (
	"crypto/sha256"
	"encoding"
	"math"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/ending"
)

const (
	framing = peer.QueryFraming + peer.AnswerFraming
	// The pieces in which ways send each other rows, and what is taken at once, are those
	// of package pipe: a test compares bytes with those of runs.
	mostPieces = 4
	pieceBytes = 64 << 10
	window     = 32 << 20
)

// A flow is bytes of one kind, and the requests for them.
type flow struct{ bytes, requests float64 }

// take adds what one node takes of another at once.
func (f *flow) take(bytes int) {
	if bytes > 0 {
		n := float64((bytes + window - 1) / window)
		f.requests += n
		f.bytes += float64(bytes) + n*framing
	}
}

// A sending is what nodes send each other.
type sending struct {
	epoch, once peer.Counts
	came        []uint64 // to each node, once
}

// sent returns what all nodes send.
func (p *plan) sent() (s sending) {
	var rows, history flow
	p.between(&rows, &history)
	p.within(&rows, &history)
	scaled(&s.epoch, peer.Activation, rows.bytes+history.bytes*p.histories(), rows.requests+history.requests*p.histories(), 1)
	sums := p.sums()
	scaled(&s.epoch, peer.Gradient, sums.bytes, sums.requests, 1)
	if n := p.Layout.Nodes; n > 1 {
		pairs := float64(n * (n - 1))
		scaled(&s.epoch, peer.Control, framing+ending.Bytes, 1, pairs)
		if p.shares() {
			for stage := range p.seats.Stages {
				scaled(&s.epoch, peer.Control, float64(p.columnsOf(stage)*number), 0, float64(n-1))
			}
		}
	}
	p.settled(&s.epoch)
	s.came = make([]uint64, p.Layout.Nodes)
	p.features(&s)
	p.edges(&s)
	return s
}

// between adds the rows and gradients between stages, and those of a history.
func (p *plan) between(rows, history *flow) {
	for stage := 1; stage < p.seats.Stages; stage++ {
		info := &p.infos[p.cuts[stage]]
		for way := range p.shape.Ways() {
			for position := range p.shape.Positions() {
				first, end := p.shape.Vertices(way, position)
				bytes := int(end-first) * (info.In + info.CarryIn) * number
				for range 2 { // forward and backward
					rows.take(bytes)
				}
				history.take(bytes)
			}
		}
	}
}

// within adds the rows and gradients that ways of a stage send each other.
func (p *plan) within(rows, history *flow) {
	var all, forward flow
	for stage := range p.seats.Stages {
		widest := 0
		for s := p.cuts[stage]; s < p.cuts[stage+1]; s++ {
			if p.sees(s) {
				widest = max(widest, p.infos[s].In)
			}
		}
		if widest == 0 {
			continue
		}
		for position := range p.shape.Positions() {
			for from := range p.shape.Ways() {
				for to := range p.shape.Ways() {
					if from == to || p.seats.Node(stage, from) == p.seats.Node(stage, to) {
						continue
					}
					pieces, n := p.pieces(to, from, position, widest)
					for s := p.cuts[stage]; n > 0 && s < p.cuts[stage+1]; s++ {
						if !p.sees(s) {
							continue
						}
						for _, of := range pieces {
							forward.take(of * p.infos[s].In * number)
						}
						all.take(n * p.infos[s].In * number) // back
					}
				}
			}
		}
	}
	rows.bytes, rows.requests = rows.bytes+(all.bytes+forward.bytes)*p.share(), rows.requests+(all.requests+forward.requests)*p.share()
	history.bytes, history.requests = history.bytes+forward.bytes, history.requests+forward.requests
}

// pieces returns the rows of each piece in which one way sends another the rows of a
// position, and their sum.
func (p *plan) pieces(to, from, position, widest int) (all []int, n int) {
	n = p.from(to, from, position)
	least := max(pieceBytes/(widest*number), (n+mostPieces-1)/mostPieces)
	shard, end := p.shape.Shards(from, position)
	begin, at := 0, 0
	for ; shard < end; shard++ {
		at += int(p.mirrors[to][shard])
		if at-begin >= least || at > begin && shard == end-1 {
			all, begin = append(all, at-begin), at
		}
	}
	if n > begin { // of shards that have no more of them
		all = append(all, n-begin)
	}
	return all, n
}

// share returns the columns that a member of a stage adds up.
func share(columns, member, members int) int {
	return columns*(member+1)/members - columns*member/members
}

// sums returns the sums of gradients.
func (p *plan) sums() (f flow) {
	for stage := range p.seats.Stages {
		columns, members := p.columnsOf(stage), p.seats.Members(stage)
		spans := exchange.Spans(p.holders(stage), p.Layout.Nodes)
		for member := range members {
			for other, node := range members {
				if other != member {
					f.take(len(spans[node]) * share(columns, member, len(members)) * number)
					f.take(share(columns, other, len(members)) * number)
				}
			}
		}
	}
	return f
}

// holders returns the node that has the gradient of each shard in a stage; -1: none.
func (p *plan) holders(stage int) []int {
	all := make([]int, len(p.Layout.Owners))
	for shard := range all {
		all[shard] = -1
		if p.vertices(shard) > 0 {
			all[shard] = p.seats.Node(stage, p.shape.WayOf(shard))
		}
	}
	return all
}

// shares reports whether the message that ends an epoch has the gradients of a stage.
func (p *plan) shares() bool {
	return p.isParted() && ending.Few(p.Model, int(p.Layout.Firsts[len(p.Layout.Firsts)-1]))
}

// settled adds what stages do with their weights after an epoch: they send them to
// everybody where they are evaluated, else a digest to the next stage.
func (p *plan) settled(to *peer.Counts) {
	if !p.isParted() || p.shares() {
		return
	}
	nodes := p.Layout.Nodes
	var rows, digests flow
	for stage := range p.seats.Stages {
		columns, members := p.columnsOf(stage), p.seats.Members(stage)
		for member := range members {
			for range nodes - len(members) {
				rows.take(share(columns, member, len(members)) * number)
			}
			if stage > 0 {
				digests.take(digestBytes())
			}
		}
	}
	often := 1 / float64(p.Recipe.EvalEvery)
	scaled(to, peer.Model, rows.bytes, rows.requests, often)
	scaled(to, peer.Control, digests.bytes, digests.requests, 1-often)
}

// digestBytes is the size of a digest that another stage goes on with.
func digestBytes() int {
	state, err := sha256.New().(encoding.BinaryAppender).AppendBinary(nil)
	if err != nil {
		return 0 // it never fails
	}
	return len(state)
}

// features adds the features that nodes of the first stage read of other nodes, which
// come once.
func (p *plan) features(s *sending) {
	for _, node := range p.seats.Members(0) {
		asked := p.reads(node)
		came := uint64(0)
		for owner, n := range asked {
			if n == 0 || owner == node {
				continue
			}
			requests := gather.Questions(n, p.Row)
			s.once.Requests[peer.Feature] += uint64(requests)
			came += uint64(requests*framing) + uint64(math.Round(float64(n)*(4+p.Row)))
		}
		s.once.Bytes[peer.Feature] += came
		s.came[node] += came
	}
}

// edges adds the shards whose edges nodes lack, and which rows ways mirror, with the degrees
// that blocks need: both come once.
func (p *plan) edges(s *sending) {
	for node := range p.Layout.Nodes {
		_, ways := p.seats.Of(node)
		shards, rows := 0, 0
		for _, way := range ways {
			_, _, first, end := p.shape.Of(way)
			for shard := first; shard < end; shard++ {
				if !p.Holds(node, shard) {
					z := p.Graph.Sizes[shard*len(p.Graph.Sizes)/len(p.Edges)]
					z.Vertices, z.Edges = int64(p.vertices(shard)), p.Edges[shard]
					shards += framing + int(z.Size(true, true))
					s.once.Requests[peer.Shard]++
				}
			}
			if rows += 4 * p.mirroredOf([]int{way}); p.Model.Form().Weighting == sample.Symmetric {
				rows += 8 * p.mirrored[way]
			}
		}
		s.once.Bytes[peer.Shard] += uint64(shards)
		s.once.Bytes[peer.Topology] += uint64(rows)
		s.came[node] += uint64(shards + rows)
	}
}

// reads returns, by owner, how many rows of features a node of the first stage reads that
// it does not hold.
func (p *plan) reads(node int) []int {
	asked := make([]int, p.Layout.Nodes)
	most := make([]int, len(p.Edges)) // of each shard: ways of one node may share rows
	_, ways := p.seats.Of(node)
	for _, way := range ways {
		_, _, first, end := p.shape.Of(way)
		for shard := range most {
			switch {
			case shard >= first && shard < end:
				most[shard] = p.vertices(shard)
			case p.infos[0].Hops > 0:
				most[shard] = max(most[shard], int(p.mirrors[way][shard]))
			}
		}
	}
	for shard, n := range most {
		if !p.Holds(node, shard) {
			asked[p.Layout.Owners[shard]] += n
		}
	}
	return asked
}
