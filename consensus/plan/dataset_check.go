package plan

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

const (
	datasetIDLen = 16
	sha256Len    = 64
	maxName      = 64 // bytes of a dataset's name
)

// CheckDatasetName returns an error, worded for the user, unless name is a valid
// dataset name.
func CheckDatasetName(name string) error {
	alone := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	within := func(r rune) bool { return alone(r) || strings.ContainsRune("._-", r) }
	if name == "" || len(name) > maxName || !alone(rune(name[0])) || strings.ContainsFunc(name, func(r rune) bool { return !within(r) }) {
		return fmt.Errorf("%w: %.80q: a dataset's name has 1 to %d letters, digits, dots, dashes and underscores, and begins with a letter or digit",
			ErrInvalid, name, maxName)
	}
	return nil
}

func (d Dataset) checkHead() error {
	if d.Replicas < 0 || d.Replicas > MaxReplicas {
		return fmt.Errorf("%w: %d replicas: there may be 0 to %d", ErrInvalid, d.Replicas, MaxReplicas)
	}
	return cmp.Or(checkHex("dataset id", d.ID, datasetIDLen), CheckDatasetName(d.Name), checkText("importer", d.Importer))
}

// checkBody returns an error unless the contents of a DefineDataset are valid.
func (d Dataset) checkBody() error {
	if err := d.About.check(); err != nil {
		return err
	}
	if len(d.Shards) == 0 || len(d.Shards) > MaxShards {
		return fmt.Errorf("%w: %d shards: there may be 1 to %d", ErrInvalid, len(d.Shards), MaxShards)
	}
	var vertices, edges uint64 // they can't overflow: MaxShards times maxNumber is less than 2^64
	for i, s := range d.Shards {
		if err := cmp.Or(
			checkNumber("vertices of a shard", s.Vertices), checkNumber("edges of a shard", s.Edges), checkNumber("halo", s.Halo),
			checkNumber("bytes of a shard", s.Bytes), checkHex("SHA-256", s.SHA256, sha256Len),
		); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		vertices, edges = vertices+s.Vertices, edges+s.Edges
	}
	if vertices != d.About.Vertices || edges != d.About.Edges {
		return fmt.Errorf("%w: the shards have %d vertices and %d edges together, the dataset %d and %d",
			ErrInvalid, vertices, edges, d.About.Vertices, d.About.Edges)
	}
	return nil
}

func (a About) check() error {
	if len(a.Splits) > MaxShards {
		return fmt.Errorf("%w: %d splits", ErrInvalid, len(a.Splits))
	}
	for i, s := range a.Splits {
		if s.Train > a.Vertices || s.Val > a.Vertices || s.Test > a.Vertices {
			return fmt.Errorf("%w: split %d has more vertices than the graph", ErrInvalid, i)
		}
	}
	if a.Features < 0 || a.Features > maxNumber || a.Classes < 0 || a.Classes > maxNumber {
		return fmt.Errorf("%w: %d features, %d classes", ErrInvalid, a.Features, a.Classes)
	}
	size := 0
	for _, name := range a.ClassNames {
		if err := checkOptional("class name", name); err != nil {
			return err
		}
		size += len(name) + 1
	}
	if len(a.ClassNames) > 0 && len(a.ClassNames) != a.Classes || size > MaxClassNames {
		return fmt.Errorf("%w: %d names of %d bytes for %d classes", ErrInvalid, len(a.ClassNames), size, a.Classes)
	}
	if len(a.Types) > MaxTypes || !utf8.ValidString(a.Types) {
		return fmt.Errorf("%w: types of %d bytes, or not in UTF-8", ErrInvalid, len(a.Types))
	}
	if a.EdgeFeatures < 0 || a.EdgeFeatures > maxNumber {
		return fmt.Errorf("%w: %d features of edges", ErrInvalid, a.EdgeFeatures)
	}
	if a.EdgeCut > a.Edges {
		return fmt.Errorf("%w: %d edges of %d are cut", ErrInvalid, a.EdgeCut, a.Edges)
	}
	for _, b := range []float64{a.Balance, a.BalanceEdges, a.BalanceTraining} {
		if math.IsNaN(b) || b < 0 || b > maxNumber {
			return fmt.Errorf("%w: a balance of %v", ErrInvalid, b)
		}
	}
	return cmp.Or(checkNumber("vertices", a.Vertices), checkNumber("edges", a.Edges),
		checkOptional("targets", a.Targets), checkText("dtype", a.DType), checkText("partitioner", a.Partitioner))
}

func checkNumber(what string, n uint64) error {
	if n > maxNumber {
		return fmt.Errorf("%w: %d %s", ErrInvalid, n, what)
	}
	return nil
}

// checkHex returns an error unless text has this many lower-case hex digits. Lower case
// makes the text of a value unique.
func checkHex(what, text string, digits int) error {
	if len(text) != digits || strings.Trim(text, "0123456789abcdef") != "" {
		return fmt.Errorf("%w: %s %.80q, not %d hex digits", ErrInvalid, what, text, digits)
	}
	return nil
}

// checkIndices returns an error unless the indices are distinct and in range.
func checkIndices(what string, list []int, n int) error {
	if len(list) > n {
		return fmt.Errorf("%w: %d times a %s, of %d", ErrInvalid, len(list), what, n)
	}
	seen := make([]bool, n)
	for _, i := range list {
		if i < 0 || i >= n || seen[i] {
			return fmt.Errorf("%w: %s %d, of %d, twice or not among them", ErrInvalid, what, i, n)
		}
		seen[i] = true
	}
	return nil
}
