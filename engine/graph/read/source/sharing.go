package source

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Sharing describes a source in parts, so that each node can read its own parts as what they
// are in the whole graph.
type Sharing struct {
	Parts    []SharedPart
	Format   string // csv or parquet
	Vertices uint32
	Width    int // of features
	// LabelColumns are the names of the columns of labels, which are no features.
	LabelColumns []string `json:",omitempty"`
}

// A SharedPart is one of the parts.
type SharedPart struct{ Label, Node, Path string }

// maxParts bounds the parts of a Sharing from another node.
const maxParts = 1 << 12

// Of returns the parts of a node, none of which need exist, or an error if another node can
// not have meant this.
func (s Sharing) Of(node string) (own []SharedPart, err error) {
	if len(s.Parts) > maxParts || s.Vertices == 0 || s.Vertices > graph.MaxVertices || s.Width < 0 || s.Width > MaxDenseFeatures || len(s.LabelColumns) > graph.MaxTargets ||
		s.Format != "csv" && s.Format != "parquet" {
		return nil, errors.New("the source can't be understood: run the same version on all nodes")
	}
	for _, p := range s.Parts {
		if p.Node != node {
			continue
		}
		if !filepath.IsAbs(p.Path) {
			return nil, fmt.Errorf("the path %.200q is not absolute", p.Path)
		}
		own = append(own, p)
	}
	return own, nil
}
