// Package desktest is a program that computes the steps of a job, for tests: a small
// regression on the features of two hops, in float64.
package desktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/desk"
)

// A Reply is an answer as a program reads it.
type Reply struct {
	Type        string       `json:"type"`
	Why         string       `json:"why"`
	Error       string       `json:"error"`
	Rank        int          `json:"rank"`
	Size        int          `json:"size"`
	Node        string       `json:"node"`
	Epoch       int          `json:"epoch"`
	Step        int          `json:"step"`
	Steps       int          `json:"steps"`
	Epochs      int          `json:"epochs"`
	Features    int          `json:"features"`
	Classes     int          `json:"classes"`
	Layers      int          `json:"layers"`
	Targets     string       `json:"targets"`
	Relations   int          `json:"relations"`
	Weighted    bool         `json:"weighted"`
	EdgeColumns int          `json:"edge_features"`
	State       *desk.Region `json:"state"`
	Roots       int          `json:"roots"`
	Nodes       int          `json:"nodes"`
	HopNodes    []int        `json:"hop_nodes"`
	HopEdges    []int        `json:"hop_edges"`
	HopFresh    []int        `json:"hop_fresh"`
	FreshFirst  bool         `json:"fresh_first"`
	Following   *desk.Batch  `json:"following"`
	NID         desk.Region  `json:"n_id"`
	X           desk.Region  `json:"x"`
	Edges       desk.Region  `json:"edge_index"`
	Y           desk.Region  `json:"y"`
	EdgeType    *desk.Region `json:"edge_type"`
	EdgeWeight  *desk.Region `json:"edge_weight"`
	EdgeAttr    *desk.Region `json:"edge_attr"`
	Region      *desk.Region `json:"region"`
	IDs         *desk.Region `json:"ids"`
	Marks       desk.Region  `json:"marks"`
	Weight      float64      `json:"weight"`
	Bytes       uint64       `json:"bytes"`
}

// A Line is a program's connection to its node.
type Line interface {
	Ask(q desk.Question) (Reply, error)
	// Data returns the memory of a region, which the program has mapped itself.
	Data(r desk.Region) []byte
}

// local is a Line within a process.
type local struct {
	program *desk.Program
	mapped  map[uint64][]byte
}

// Local returns the line of an attached program. Its memory stays mapped.
func Local(p *desk.Program) Line { return &local{p, map[uint64][]byte{}} }

func (l *local) Ask(q desk.Question) (r Reply, err error) {
	a, err := l.program.Ask(q)
	if err != nil {
		return r, err
	}
	for _, m := range a.Uses {
		if l.mapped[m.ID] != nil {
			continue
		}
		file, bytes, err := m.File()
		if errors.Is(err, desk.ErrClosed) {
			return Reply{Type: "again", Why: "the run has ended meanwhile"}, nil
		}
		if err != nil {
			return r, err
		}
		if l.mapped[m.ID], err = unix.Mmap(int(file.Fd()), 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return r, err
		}
		if err := file.Close(); err != nil {
			return r, err
		}
	}
	text, err := json.Marshal(a.Body)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

func (l *local) Data(r desk.Region) []byte { return l.mapped[r.Memory][r.Offset:][:r.Bytes] }

// A Place is a step of an epoch.
type Place struct{ Epoch, Step int }

// Seen is what a program saw in a step.
type Seen struct {
	Roots, Vertices []int64
	Edges           map[[2]int64]bool // by vertices
	Hops            [2][]int          // vertices and edges of each
}

// A Program computes steps.
type Program struct {
	Line Line
	Rate float64
	// Every is how many steps lie between two states that are kept; 0: none is.
	Every int
	// Before, if not nil, is called before a batch is computed; an error ends the program.
	Before func(at Place) error
	// Last is called after the steps of an epoch.
	Last func(epoch int) desk.Scores
	// StopAfter is the epoch after which it asks for the end; 0: none.
	StopAfter int

	mu       sync.Mutex
	Seen     map[Place]Seen
	Weights  []float64
	Readies  []Reply
	Restarts int
	Ends     []int

	room  desk.Region
	steps int
}

// Run computes until the job has ended, or ctx's program left.
func (p *Program) Run() error {
	p.Seen = map[Place]Seen{}
	for {
		again, err := p.visit()
		if err != nil || !again {
			return err
		}
		p.Restarts++
	}
}

// errAgain ends a visit.
var errAgain = errors.New("again")

// ask asks, and returns an error unless the answer is of some type.
func (p *Program) ask(q desk.Question, types ...string) (Reply, error) {
	r, err := p.Line.Ask(q)
	if err != nil {
		return r, err
	}
	if slices.Contains(types, r.Type) {
		return r, nil
	}
	switch r.Type {
	case "again":
		return r, errAgain
	case "failed":
		return r, errors.New(r.Error)
	}
	return r, fmt.Errorf("%s is answered by %+v", q.Type, r)
}

func (p *Program) visit() (again bool, err error) {
	defer func() {
		if errors.Is(err, errAgain) {
			again, err = true, nil
		}
	}()
	ready, err := p.ask(desk.Question{Type: desk.Hello, Version: desk.Version}, "ready", "done")
	if err != nil || ready.Type == "done" {
		return false, err
	}
	p.Readies = append(p.Readies, ready)
	p.Weights = make([]float64, ready.Features)
	if ready.State != nil {
		copy(p.Weights, desk.Numbers[float64](p.Line.Data(*ready.State)))
	}
	size := uint64(8 * ready.Features)
	size += -size % desk.Align
	r, err := p.ask(desk.Question{Type: desk.Room, Bytes: 2 * size}, "room")
	if err != nil {
		return false, err
	}
	p.room = *r.Region
	p.room.Bytes = size
	for {
		r, err := p.ask(desk.Question{Type: desk.Next}, "batch", "last", "end", "done")
		if err != nil {
			return false, err
		}
		switch r.Type {
		case "batch":
			err = p.step(r)
		case "last":
			err = p.report(r.Epoch)
		case "end":
			p.Ends = append(p.Ends, r.Epoch)
			if p.StopAfter == r.Epoch {
				_, err = p.ask(desk.Question{Type: desk.Stop}, "done")
				return false, err
			}
		case "done":
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func (p *Program) report(epoch int) error {
	if p.Last == nil {
		return nil
	}
	_, err := p.ask(desk.Question{Type: desk.Report, Scores: p.Last(epoch)}, "noted")
	return err
}

// step computes a batch.
func (p *Program) step(b Reply) error {
	at := Place{b.Epoch, b.Step}
	if p.Before != nil {
		if err := p.Before(at); err != nil {
			return err
		}
	}
	ids, edges := desk.Numbers[int64](p.Line.Data(b.NID)), desk.Numbers[int64](p.Line.Data(b.Edges))
	labels, x := desk.Numbers[int64](p.Line.Data(b.Y)), desk.Numbers[float32](p.Line.Data(b.X))
	n := len(edges) / 2
	seen := Seen{Roots: append([]int64{}, ids[:b.Roots]...), Vertices: append([]int64{}, ids...), Edges: map[[2]int64]bool{}, Hops: [2][]int{b.HopNodes, b.HopEdges}}
	for i := range n {
		seen.Edges[[2]int64{ids[edges[i]], ids[edges[n+i]]}] = true
	}
	p.mu.Lock()
	p.Seen[at] = seen
	p.mu.Unlock()
	gradient := gradientOf(p.Weights, x, labels, edges[:n], edges[n:], b.Nodes)
	q := desk.Question{Type: desk.Sum, DType: desk.F64, Weight: float64(b.Roots)}
	if b.Roots > 0 {
		region := p.room
		region.Bytes = uint64(8 * len(gradient))
		copy(desk.Numbers[float64](p.Line.Data(region)), gradient)
		q.Region = &region
	}
	r, err := p.ask(q, "summed")
	if err != nil {
		return err
	}
	sum := q.Region
	if sum == nil {
		sum = r.Region
	}
	for i, g := range desk.Numbers[float64](p.Line.Data(*sum)) {
		p.Weights[i] -= p.Rate * g / r.Weight
	}
	if p.steps++; p.Every > 0 && (b.Step+1)%p.Every == 0 {
		return p.Keep()
	}
	return nil
}

// Keep has the weights kept.
func (p *Program) Keep() error {
	region := p.room
	region.Offset += p.room.Bytes
	region.Bytes = uint64(8 * len(p.Weights))
	copy(desk.Numbers[float64](p.Line.Data(region)), p.Weights)
	_, err := p.ask(desk.Question{Type: desk.Keep, Region: &region}, "kept")
	return err
}

// gradientOf returns the gradient of the squared errors of the first vertices, of which each
// has a label. A layer adds the mean of a vertex's neighbours to its own row, and there are
// two.
func gradientOf(w []float64, x []float32, labels []int64, sources, targets []int64, nodes int) []float64 {
	f := len(w)
	rows := make([]float64, len(x))
	for i, v := range x {
		rows[i] = float64(v)
	}
	for range 2 {
		sums, degrees := make([]float64, len(rows)), make([]float64, nodes)
		for i, u := range sources {
			v := targets[i]
			degrees[v]++
			for c := range f {
				sums[int(v)*f+c] += rows[int(u)*f+c]
			}
		}
		for i := range rows {
			rows[i] += sums[i] / math.Max(1, degrees[i/f])
		}
	}
	gradient := make([]float64, f)
	for r, label := range labels {
		row := rows[r*f:][:f]
		off := -float64(label)
		for c := range f {
			off += w[c] * row[c]
		}
		for c := range f {
			gradient[c] += 2 * off * row[c]
		}
	}
	return gradient
}
