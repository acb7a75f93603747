package recipe

import (
	"bytes"
	"encoding/json"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// A From names the weights that training starts from: those of the model of another job.
type From struct {
	Job string `json:"job"` // its id, for people
	Key string `json:"key"` // which no other job has
	// Weights is the hex SHA-256 of the weights, as an epoch's record has it. Each node compares.
	Weights string `json:"weights_sha256"`
}

// seeded is a recipe without methods.
type seeded Recipe

// MarshalJSON writes a recipe. Where it says what earlier programs do not know of, the seed stands in
// a list: these can't read such a recipe, while they would otherwise skip what they do not know, and
// train to other weights. What came later stands in a list of a list, and so on.
func (r Recipe) MarshalJSON() ([]byte, error) {
	depth := r.depth()
	if depth == 0 {
		return json.Marshal(seeded(r))
	}
	var seed any = r.Seed
	for range depth {
		seed = [1]any{seed}
	}
	return json.Marshal(struct {
		seeded
		Seed any `json:"seed"`
	}{seeded(r), seed})
}

// deepest is how many lists a seed stands in at most.
const deepest = 3

// depth returns in how many lists the seed stands.
func (r *Recipe) depth() int {
	switch {
	case r.Links != nil && (len(r.Links.Hits) > 0 || r.Links.Divided()), r.Model.Model == nn.Program && (r.Model.Weighted || r.Model.Relations > 0):
		// Hits of one's own, a given split of edges that are no triples, and edges of which programs
		// read weights or relations.
		return deepest
	case r.EmbeddingsAt != "":
		return 2 // on which nodes learnt rows are
	case r.From != nil || r.Embeddings > 0 || r.Links != nil && r.Links.From != "":
		return 1 // models to start from, learnt rows, and negatives that are drawn in a way of their own
	}
	return 0
}

// UnmarshalJSON reads a recipe. What the text does not name stays.
func (r *Recipe) UnmarshalJSON(text []byte) error {
	to := struct {
		*seeded
		Seed json.RawMessage `json:"seed"`
	}{seeded: (*seeded)(r)}
	if err := json.Unmarshal(text, &to); err != nil {
		return err
	}
	if len(to.Seed) == 0 {
		return nil
	}
	seed := to.Seed
	for range deepest {
		if !bytes.HasPrefix(bytes.TrimSpace(seed), []byte("[")) {
			break
		}
		var list [1]json.RawMessage
		if err := json.Unmarshal(seed, &list); err != nil {
			return err
		}
		seed = list[0]
	}
	return json.Unmarshal(seed, &r.Seed)
}
