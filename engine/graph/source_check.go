package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// CheckSource compares a source's in-memory data with its metadata, so that later indexing stays in
// range.
func CheckSource(src Source) error {
	meta := src.Meta()
	n := int(meta.Vertices)
	if meta.Features < 0 || meta.Features > MaxVertices || meta.Classes < 0 || meta.Classes > MaxVertices {
		return fmt.Errorf("the source has %d features and %d classes", meta.Features, meta.Classes)
	}
	if meta.EdgeFeatures < 0 || meta.EdgeFeatures > MaxEdgeFeatures {
		return fmt.Errorf("the source has %d features of edges, and at most %d can be taken: make them fewer", meta.EdgeFeatures, MaxEdgeFeatures)
	}
	if t := meta.Types; t != nil {
		if meta.EdgeFeatures > 0 {
			return errors.New("edges of a graph with types have no features yet: leave the features of edges out")
		}
		if err := t.Check(uint64(meta.Vertices), meta.Features); err != nil {
			return fmt.Errorf("the source is not usable: %w", err)
		}
		if _, err := t.Text(); err != nil {
			return err
		}
	}
	labels := src.Labels()
	if labels != nil && len(labels) != n {
		return fmt.Errorf("the source has %d labels for %d vertices", len(labels), n)
	}
	for v, label := range labels {
		if label < NoLabel || int64(label) >= int64(meta.Classes) {
			return fmt.Errorf("vertex %d has the label %d, and there are %d classes", v, label, meta.Classes)
		}
	}
	if err := checkColumns(src.Targets(), meta); err != nil {
		return err
	}
	splits := src.Splits()
	if len(splits) > MaxSplits {
		return fmt.Errorf("the source has %d splits, and %d are the most", len(splits), MaxSplits)
	}
	for i, marks := range splits {
		if len(marks) != n {
			return fmt.Errorf("split %d marks %d of %d vertices", i, len(marks), n)
		}
		for v, mark := range marks {
			if mark > Test {
				return fmt.Errorf("split %d gives vertex %d the unknown mark %d", i, v, mark)
			}
		}
	}
	ids := src.IDs()
	if ids.Strings != nil {
		offsets := ids.Strings.Offsets
		if len(offsets) != n+1 || offsets[0] != 0 || !slices.IsSorted(offsets) || offsets[n] != int64(len(ids.Strings.Bytes)) {
			return fmt.Errorf("the source's names do not fit its %d vertices", n)
		}
	} else if ids.Ints != nil && len(ids.Ints) != n {
		return fmt.Errorf("the source has %d ids for %d vertices", len(ids.Ints), n)
	}
	return nil
}

// checkColumns returns an error unless a source has the targets that it says.
func checkColumns(c Columns, meta Meta) error {
	if err := CheckTargets(meta.Targets, meta.Classes); err != nil {
		return fmt.Errorf("the source is not usable: %w", err)
	}
	yes, numbers := 0, 0
	switch cells := int(meta.Vertices) * meta.Classes; meta.Targets {
	case YesOrNo:
		yes = cells
	case Numbers:
		numbers = cells
	}
	if len(c.YesOrNo) != yes || len(c.Numbers) != numbers {
		return fmt.Errorf("the source has %d targets of 0 or 1 and %d numbers, for %d vertices with %d columns of %q", len(c.YesOrNo), len(c.Numbers), meta.Vertices, meta.Classes, string(meta.Targets))
	}
	for i, cell := range c.YesOrNo {
		if cell > 1 && cell != Missing {
			return fmt.Errorf("vertex %d has the target %d, and there are 0, 1 and %d, which is missing", i/meta.Classes, cell, Missing)
		}
	}
	for i, cell := range c.Numbers {
		if math.IsInf(float64(cell), 0) {
			return fmt.Errorf("vertex %d has an infinite target: leave it out, or make it NaN", i/meta.Classes)
		}
	}
	return nil
}
