package recipe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/dataset"
)

// EmbeddingsKey is the key of Set for Recipe.Embeddings.
const EmbeddingsKey = "train.embeddings"

// embeddingsAtKey is the key of Set for Recipe.EmbeddingsAt.
const embeddingsAtKey = "train.embeddings_at"

// The values of Recipe.EmbeddingsAt.
const (
	AtAll    = "all"    // each node has all rows
	AtOwners = "owners" // each has those of its shards, and of those of one more node
)

// usualEmbeddings is how many columns rows have that are learnt of vertices, if nothing is said.
const usualEmbeddings = 64

// mostEmbeddings is how many they have at most.
const mostEmbeddings = 1 << 12

// LearnRows has rows of the vertices learnt, if a graph has no features and nothing was said: said
// lists keys of Set. A model can learn nothing else there, so it is the default. Where
// only some types have none, whose columns bare lists, rows are learnt if that was said: their vertices
// differ by their neighbours, and a table is much larger than a model.
func (r *Recipe) LearnRows(about dataset.About, bare []int, said ...string) {
	if (about.Features == 0 || about.Pairs && len(bare) == about.Features) && !slices.Contains(said, EmbeddingsKey) {
		r.Embeddings = usualEmbeddings
	}
	if r.Embeddings > 0 {
		r.Bare = bare
	}
}

// checkEmbeddings returns an error unless the rows that models read are there, or can be learnt.
func (r *Recipe) checkEmbeddings(about dataset.About) error {
	switch {
	case r.EmbeddingsAt != "" && r.Embeddings == 0:
		return errors.New("{train.embeddings_at} says where learnt rows are, and this job learns none: leave it out")
	case r.EmbeddingsAt != "" && r.EmbeddingsAt != AtAll && r.EmbeddingsAt != AtOwners:
		return fmt.Errorf("{train.embeddings_at} is %q: it is auto, %s or %s", r.EmbeddingsAt, AtAll, AtOwners)
	case r.EmbeddingsAt == AtOwners && about.Features > 0:
		return errors.New("{train.embeddings_at} owners is for graphs without any features, since learnt rows that follow some are on each node: leave it out")
	case r.Embeddings == 0 && about.Features == 0:
		return errors.New("the dataset has no features for the model to read, and {train.embeddings} is off: leave that out, so that a row of each vertex is learnt, or import the dataset again from a source that has some")
	case r.Embeddings == 0:
		return nil
	case r.Embeddings < 0 || r.Embeddings > mostEmbeddings:
		return fmt.Errorf("{train.embeddings} is %d: give 1 to %d columns, or off", r.Embeddings, mostEmbeddings)
	case about.Features > 0 && len(r.Bare) == 0:
		return fmt.Errorf("{train.embeddings} is for vertices without features, and all of this dataset's have %s of them: leave it out", Count(about.Features, "column"))
	case slices.ContainsFunc(r.Bare, func(column int) bool { return column < 0 || column >= about.Features }):
		return fmt.Errorf("the columns %v say which vertices have no features, and the dataset has %d: train it on the dataset that it was made for", r.Bare, about.Features)
	case r.Optimizer.Momentum != 0:
		return errors.New("{train.momentum} moves rows that no step has touched, and {train.embeddings} learns rows of vertices: leave it out, or choose {optimizer} adam")
	case about.Features == 0 && r.Features != "auto" && r.Features != "none":
		return fmt.Errorf("{normalize-features} is %s, and rows that are learnt are not normalised: leave it out", r.Features)
	case r.From != nil:
		return errors.New("rows of vertices are learnt anew in each job, so that a job with {train.embeddings} starts from no other: begin without one")
	}
	return nil
}

// MayPart reports whether learnt rows may be on some of a job's nodes each.
func (r *Recipe) MayPart() bool {
	return r.Embeddings > 0 && len(r.Bare) == 0 && r.EmbeddingsAt != AtAll
}
