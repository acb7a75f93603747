package generate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Options configures the graph to generate. Either Kind or Preset is set.
type Options struct {
	Kind     string // rmat or sbm
	Vertices uint32
	// Edges is the number of edges before equal ones are merged. An sbm graph has each
	// edge in both directions, so an odd number is rounded down.
	Edges    uint64
	Features int // columns, 0: none
	Classes  int // 0: no labels and no split
	// Communities is the number of communities of an sbm graph; 0: one per thousand
	// vertices, but at least one per class.
	Communities int
	// Inside is the share of edges that stay in their community; 0: 0.8.
	Inside float64
	// Homophily is the share of edges whose ends have the same class; 0: 0.8. It can't be
	// below 1/Classes.
	Homophily float64
	Seed      uint64
	Preset    string  // arxiv, reddit, products, papers100m or mag, instead of everything but Seed and Scale
	Scale     float64 // multiplies Vertices and Edges; 0: 1
}

const (
	usualShare            = 0.8
	usualCommunity        = 1000 // vertices
	maxFeatures           = 1 << 16
	maxClasses            = 1 << 16
	maxEdges       uint64 = 1 << 53
)

var kinds = []string{"rmat", "sbm"}

// resolve checks o and fills in the defaults.
func (o Options) resolve() (Options, shape, error) {
	like := shape{train: 0.6, validation: 0.2}
	if o.Preset != "" {
		var err error
		if o, like, err = o.fromPreset(); err != nil {
			return o, like, err
		}
	}
	if !slices.Contains(kinds, o.Kind) {
		return o, like, fmt.Errorf("there is no kind of graph called %q: choose one of %s", o.Kind, strings.Join(kinds, ", "))
	}
	if o.Kind == "rmat" && (o.Communities != 0 || o.Inside != 0) {
		return o, like, errors.New("an rmat graph has no communities: choose sbm, or leave out what is said about communities")
	}
	if err := o.scale(); err != nil {
		return o, like, err
	}
	if o.Kind == "sbm" {
		o.Edges -= o.Edges % 2
	}
	o.Inside, o.Homophily = orUsual(o.Inside), orUsual(o.Homophily)
	return o, like, o.check()
}

func orUsual(share float64) float64 {
	if share == 0 {
		return usualShare
	}
	return share
}

func (o *Options) scale() error {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if !(o.Scale > 0) || math.IsInf(o.Scale, 1) { // NaN is not above 0 either
		return fmt.Errorf("the graph can't be scaled by %v: the scale is a number above 0", o.Scale)
	}
	if o.Scale == 1 {
		return nil
	}
	vertices, edges := math.Round(float64(o.Vertices)*o.Scale), math.Round(float64(o.Edges)*o.Scale)
	if vertices > graph.MaxVertices {
		return fmt.Errorf("scaled by %v the graph would have %.0f vertices, and %d is the most there can be: choose a smaller scale", o.Scale, vertices, graph.MaxVertices)
	}
	if edges > float64(maxEdges) {
		return fmt.Errorf("scaled by %v the graph would have %.0f edges, and %d is the most that can be made up: choose a smaller scale", o.Scale, edges, maxEdges)
	}
	o.Vertices, o.Edges = uint32(vertices), uint64(edges)
	return nil
}

func (o *Options) check() error {
	switch {
	case o.Vertices == 0:
		return errors.New("the graph has no vertices: ask for one at least")
	case o.Vertices > graph.MaxVertices:
		return fmt.Errorf("%d vertices are too many: %d is the most a graph can have", o.Vertices, graph.MaxVertices)
	case o.Edges > maxEdges:
		return fmt.Errorf("%d edges are too many: %d is the most that can be made up", o.Edges, maxEdges)
	case o.Edges > 0 && o.Vertices == 1:
		return errors.New("one vertex alone can't have edges, since none are made from a vertex to itself: ask for two vertices at least")
	case o.Features < 0 || o.Features > maxFeatures:
		return fmt.Errorf("a vertex can't have %d features: choose 0 to %d", o.Features, maxFeatures)
	case o.Classes < 0 || o.Classes > maxClasses:
		return fmt.Errorf("there can't be %d classes: choose 0 to %d", o.Classes, maxClasses)
	case o.Classes > int(o.Vertices):
		return fmt.Errorf("%d classes are too many for %d vertices: choose at most as many", o.Classes, o.Vertices)
	case !(o.Homophily >= 0 && o.Homophily <= 1):
		return fmt.Errorf("the homophily %v is not the share of anything: choose 0 to 1", o.Homophily)
	case !(o.Inside >= 0 && o.Inside <= 1):
		return fmt.Errorf("%v of the edges can't be inside their community: choose a share from 0 to 1", o.Inside)
	}
	if o.Kind != "sbm" {
		return nil
	}
	if o.Communities == 0 {
		o.Communities = max(1, o.Classes, int(o.Vertices/usualCommunity))
	}
	switch {
	case o.Communities < 0:
		return fmt.Errorf("there can't be %d communities: choose 1 or more", o.Communities)
	case o.Communities > int(o.Vertices):
		return fmt.Errorf("%d communities are too many for %d vertices: choose at most as many", o.Communities, o.Vertices)
	case o.Communities < o.Classes:
		return fmt.Errorf("%d communities are too few for %d classes, since a community has one class: choose at least as many", o.Communities, o.Classes)
	}
	return nil
}
