package api

import (
	"path/filepath"
	"slices"
)

// PairOptions ask for scores of pairs of vertices in place of predictions for vertices. The
// model must be one of task link. Files are tables with ids of the dataset's source; a path is
// of the machine of the daemon that is asked.
type PairOptions struct {
	Task  string `json:"task,omitempty"`  // what the job must have learnt; "": anything
	Pairs string `json:"pairs,omitempty"` // the file of the pairs to be scored
	// Top asks for so many best partners of each vertex. They are found among all vertices that
	// are no neighbours of it in either direction.
	Top        int    `json:"top,omitempty"`
	Vertices   string `json:"vertices,omitempty"`   // the file of the vertices that partners are found for; "": all
	Neighbours bool   `json:"neighbours,omitempty"` // neighbours are partners, too
	// Relation is that of all pairs, by its name, where the model has learnt triples: sources are
	// heads, and targets tails.
	Relation string `json:"relation,omitempty"`
}

// MaxTop bounds PairOptions.Top.
const MaxTop = 1 << 16

var pairFormats = []string{".csv", ".json", ".npy", ".parquet", ".tsv"}

// PairFormats lists the formats of scores of pairs, as file name extensions.
func PairFormats() []string { return slices.Clone(pairFormats) }

// Paired reports whether pairs are asked for.
func (o PairOptions) Paired() bool { return o.Pairs != "" || o.Top != 0 }

// check returns an error if no node would accept such options for this request.
func (o PairOptions) check(r PredictRequest) error {
	switch {
	case o.Pairs != "" && o.Top != 0:
		return Invalid("--pairs scores given pairs and --top finds partners: give one of them")
	case o.Top < 0 || o.Top > MaxTop:
		return Invalid("--top is %d: give 1 to %d partners", o.Top, MaxTop)
	case o.Vertices != "" && o.Top == 0:
		return Invalid("--vertices says whose partners are found: give --top, too")
	case o.Neighbours && o.Top == 0:
		return Invalid("--neighbours says who may be a partner: give --top, too")
	case o.Relation != "" && !o.Paired():
		return Invalid("--relation says of which relation pairs are: give --pairs or --top, too")
	case o.Paired() && r.Embeddings:
		return Invalid("--embeddings writes a row for each vertex, and no pairs: leave it out")
	case o.Paired() && o.Task != "" && o.Task != link:
		return Invalid("--task is %s, and pairs are scored by task %s: leave it out", o.Task, link)
	case o.Top != 0 && r.Format == ".npy":
		return Invalid("an .npy file holds scores without ids, so it can't say who the partners are: use another format")
	}
	for _, file := range []struct{ flag, path string }{{"--pairs", o.Pairs}, {"--vertices", o.Vertices}} {
		switch {
		case file.path == "" || readable.MatchString(file.path):
		case scheme.MatchString(file.path):
			return Invalid("%s is %.80q, a URL of a kind that is not read: give one of http, https, s3 or gs, or a path", file.flag, file.path)
		case !filepath.IsAbs(file.path):
			return Invalid("%s is %q, which is no absolute path: the daemon has a working directory of its own", file.flag, file.path)
		}
	}
	return nil
}
