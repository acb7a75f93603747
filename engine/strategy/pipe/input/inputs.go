package input

import (
	"context"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
	columns "github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/gather"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/session"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// standIns are features for measuring times: the features of a vertex of this node
// stand in for those of vertices of other nodes.
type standIns struct {
	reads *Reads
	near  uint32
	ids   []uint32
}

// NewStandIns returns those from the features of this node.
func NewStandIns(data *dataset.Graph, device tensor.Device) *standIns {
	i := &standIns{reads: NewReads(data, device)}
	for _, of := range data.Shards {
		if of.Vertices > 0 && data.Features.Has(of.First) {
			i.near = of.First
			break
		}
	}
	return i
}

// PlanOne makes room for one grain.
func (i *standIns) PlanOne() { i.reads.places = make([]place, 1) }

// Plan makes room for what a worker reads, none of it from other nodes.
func (i *standIns) Plan(grains [][]uint32, places int, briefly bool) {
	i.reads.Plan(grains, places, briefly)
	i.reads.sets[0] = nil
}

// Open takes the memory of places.
func (i *standIns) Open() error { return i.reads.Open() }

func (i *standIns) Close() { i.reads.Close() }

// Input implements the Features of a pipe.Task.
func (i *standIns) Input(at, grain int, vertices []uint32) (nn.Input, error) {
	if !i.reads.Data.Features.Has(i.near) {
		return i.nothing(at, vertices), nil
	}
	i.ids = append(i.ids[:0], vertices...)
	for n, v := range i.ids {
		if !i.reads.Data.Features.Has(v) {
			i.ids[n] = i.near
		}
	}
	in, err := i.reads.Input(at, grain, i.ids)
	in.Vertices = vertices
	return in, err
}

// nothing returns zeros, where this node has no features at all.
func (i *standIns) nothing(at int, vertices []uint32) nn.Input {
	r, in := i.reads, nn.Input{Vertices: vertices}
	if r.Data.Features.Sparse() {
		b := sample.Block{CSR: tensor.CSR{Rows: len(vertices), Cols: r.Data.Features.Columns(), Indptr: make([]int64, len(vertices)+1)}}
		b.Transpose()
		in.Sparse = &b.CSR
		return in
	}
	in.Dense = r.dense(at, len(vertices))
	r.device.Zero(in.Dense)
	return in
}

// Reads are the features that a pipeline's first stage reads. Those of other nodes are
// fetched once, before the first epoch.
type Reads struct {
	Data   *dataset.Graph
	device tensor.Device

	far    gather.Rows
	at     dataset.Index // the places of remote rows in columns.Store
	Rows   int           // of an epoch's input
	places []place
	one    bool // all places are one: see Share
	sets   [1][]uint32

	most   int // rows of a place
	ids    []uint32
	arena  tensor.Arena    // of the rooms
	rooms  []tensor.Matrix // of places, if they are dense and planned
	single tensor.Arena    // of the place of PlanOne
	spare  tensor.Arena
}

// A place holds the input of a grain.
type place struct {
	grain  int // -1: nothing yet
	sparse columns.Rows
	dense  tensor.Matrix
}

// Plan finds which rows are remote of the vertices that a worker reads, a set for each
// grain, into so many places. Dense rows that are read only briefly take turns in one.
func (r *Reads) Plan(grains [][]uint32, places int, briefly bool) {
	if r.one = r.one || briefly && !r.Data.Features.Sparse(); r.one {
		places = min(places, 1)
	}
	r.places, r.Rows, r.most = make([]place, places), 0, 0
	var far []uint32
	for _, vertices := range grains {
		r.Rows += len(vertices)
		r.most = max(r.most, len(vertices))
		for _, v := range vertices {
			if !r.Data.Features.Has(v) {
				far = append(far, v)
			}
		}
	}
	slices.Sort(far)
	r.sets[0] = slices.Compact(far)
}

// Share makes all places one, which takes the memory of the largest and is filled again
// whenever another grain is read. It returns how many bytes that saves: none where rows are
// sparse, since passes keep parts of those. It is called before Open.
func (r *Reads) Share() uint64 {
	if len(r.places) < 2 || r.Data.Features.Sparse() {
		return 0
	}
	before := r.Bytes()
	r.one, r.places = true, r.places[:1]
	return before - r.Bytes()
}

// Bring fetches the remote rows.
func (r *Reads) Bring(ctx context.Context, s *session.Session) error {
	if s.Alone() {
		return nil
	}
	// Nodes that read nothing ask for nothing.
	if err := s.Source.Gather(ctx, &r.far, r.sets[:], 0, 0, gather.Options{}, &s.Start); err != nil {
		return fmt.Errorf("bring the features that the first stage reads: %w", err)
	}
	rows := make([]int32, len(r.sets[0]))
	for i, at := range r.far.Places[0] {
		rows[i] = int32(at)
	}
	r.at = dataset.NewIndex(r.sets[0], rows, r.Data.Topology.Vertices())
	return nil
}

// Bytes returns the memory of the inputs.
func (r *Reads) Bytes() uint64 {
	n := r.far.Far.Bytes() + 8*uint64(len(r.sets[0]))
	if r.Data.Features.Sparse() {
		rows := float64(r.Rows)
		if len(r.places) > 0 {
			rows = float64(len(r.places) * r.most)
		}
		return n + uint64(rows*(8+20*r.Data.Entries))
	}
	return n + uint64(r.inRooms())
}

// inRooms returns the bytes of the places, if they are dense: one arena has them all, since each
// would be whole slabs.
func (r *Reads) inRooms() int {
	const ends = 64 // of matrices, which begin at whole cache lines
	return len(r.places) * (r.most*r.Data.Features.Columns()*r.device.Type().Bytes() + ends)
}

// Open takes the memory of places.
func (r *Reads) Open() (err error) {
	if r.spare, err = r.device.NewArena(0); err != nil {
		return err
	}
	for i := range r.places {
		r.places[i].grain = -1
	}
	if r.Data.Features.Sparse() || len(r.places) == 0 {
		return nil
	}
	if r.most == 0 { // not planned: as the grain needs that is read
		r.single, err = r.device.NewArena(0)
		return err
	}
	if r.arena, err = r.device.NewArena(r.inRooms()); err != nil {
		return err
	}
	for range r.places {
		r.rooms = append(r.rooms, r.arena.Alloc(r.device.Type(), r.most, r.Data.Features.Columns()))
	}
	return nil
}

func (r *Reads) Close() {
	for _, a := range []tensor.Arena{r.arena, r.single, r.spare} {
		if a != nil {
			a.Close()
		}
	}
}

// NewReads returns features that are yet to be planned.
func NewReads(data *dataset.Graph, device tensor.Device) *Reads {
	return &Reads{Data: data, device: device}
}

// Input implements the Features of a pipe.Task. A place that already holds the grain is left as it
// is. The one place of all is filled with the same bits where it was before, so that a pass
// may go on with an input that has been filled again.
func (r *Reads) Input(at, grain int, vertices []uint32) (nn.Input, error) {
	if r.one {
		at = 0
	}
	p, in := &r.places[at], nn.Input{Vertices: vertices}
	if p.grain != grain {
		p.grain = grain
		r.fill(p, at, vertices)
	}
	if r.Data.Features.Sparse() {
		in.Sparse = &p.sparse.CSR
	} else {
		in.Dense = p.dense
	}
	return in, nil
}

func (r *Reads) fill(p *place, at int, vertices []uint32) {
	store := r.Data.Features
	r.ids = append(r.ids[:0], vertices...)
	for i, v := range r.ids {
		if !store.Has(v) {
			r.ids[i] = uint32(r.at.Find(v))
		}
	}
	var far *columns.Far
	if len(r.sets[0]) > 0 {
		far = &r.far.Far
	}
	if store.Sparse() {
		store.Fill(&p.sparse, r.ids, true, far)
		return
	}
	r.spare.Reset()
	p.dense = r.dense(at, len(vertices))
	store.Dense(r.device, r.spare, p.dense, r.ids, far)
}

// dense returns so many rows of a place.
func (r *Reads) dense(at, rows int) tensor.Matrix {
	if r.one {
		at = 0
	}
	if r.single == nil {
		return r.rooms[at].RowRange(0, rows)
	}
	r.single.Reset()
	return r.single.Alloc(r.device.Type(), rows, r.Data.Features.Columns())
}
