package recipe

import (
	"bytes"
	"encoding/json"
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

// MarshalJSON writes a recipe. Where training starts from another model, rows of vertices are learnt,
// or negatives are drawn in a way of their own, the seed stands in a list: programs that do not know these fields can't read
// such a recipe, while they would otherwise skip them, and train to other weights. It stands in a list of a
// list where the recipe says on which nodes rows are, which came later.
func (r Recipe) MarshalJSON() ([]byte, error) {
	if r.EmbeddingsAt != "" {
		return json.Marshal(struct {
			seeded
			Seed [1][1]uint64 `json:"seed"`
		}{seeded(r), [1][1]uint64{{r.Seed}}})
	}
	if r.From == nil && r.Embeddings == 0 && (r.Links == nil || r.Links.From == "") {
		return json.Marshal(seeded(r))
	}
	return json.Marshal(struct {
		seeded
		Seed [1]uint64 `json:"seed"`
	}{seeded(r), [1]uint64{r.Seed}})
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
	if !bytes.HasPrefix(bytes.TrimSpace(to.Seed), []byte("[")) {
		return json.Unmarshal(to.Seed, &r.Seed)
	}
	var list [1]json.RawMessage
	if err := json.Unmarshal(to.Seed, &list); err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(list[0]), []byte("[")) {
		return json.Unmarshal(list[0], &r.Seed)
	}
	var seed [1]uint64
	err := json.Unmarshal(list[0], &seed)
	if err == nil {
		r.Seed = seed[0]
	}
	return err
}
