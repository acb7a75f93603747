package graph

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Types describes a graph whose vertices are of several types and whose edges are of several
// relations. A graph of one type has none.
type Types struct {
	// Vertices are the types, in the order of their vertices in the source: those of one type
	// follow one another.
	Vertices []VertexType `json:"vertices"`
	// Relations are what edges are; an edge is of one of them, by its place in this list.
	Relations []Relation `json:"relations"`
	// Given is how many triples are for training, validation and test, where edges are triples with
	// a given split (see Numbers); nil: they are not.
	Given *[3]uint64 `json:"given,omitempty"`
	// Pairs means that edges are no triples, but have a given split (see GivenPairs).
	Pairs bool `json:"pairs,omitempty"`
}

// A VertexType is a type of vertices. Columns of its features, from First on, are zeros in
// vertices of other types. A type without features has a column of ones, which says only that a
// vertex is of this type.
type VertexType struct {
	Name     string `json:"name"`
	Vertices uint64 `json:"vertices"`
	First    int    `json:"first_feature"`
	Features int    `json:"features"`
	Bare     bool   `json:"bare,omitempty"` // it has no features of its own
}

// Own returns how many features vertices of the type have of their own.
func (t *VertexType) Own() int {
	if t.Bare {
		return 0
	}
	return t.Features
}

// A Relation is what edges from one type of vertex to another say.
type Relation struct {
	// Source and Target are types; Text leaves them out where there is one type.
	Source string `json:"source,omitempty"`
	Name   string `json:"name"`
	Target string `json:"target,omitempty"`
	Edges  uint64 `json:"edges"` // in the source, before equal ones were merged
}

// String returns the relation as files name it.
func (r Relation) String() string { return r.Source + "-" + r.Name + "-" + r.Target }

// Bounds of types: all nodes keep them in the plan. MaxTypesText bounds their text in bytes. There is
// room for FB15k, which has the most relations of the usual knowledge graphs: 1,345 with long names.
const (
	MaxTypes     = 256
	MaxRelations = 8192
	MaxTypeName  = 256
	MaxTypesText = 160 << 10
)

// Check returns an error unless these are the types of a graph of so many vertices.
func (t *Types) Check(vertices uint64, features int) error {
	switch {
	case len(t.Vertices) == 0 || len(t.Vertices) > MaxTypes:
		return fmt.Errorf("there are %d types of vertices, and there may be 1 to %d", len(t.Vertices), MaxTypes)
	case len(t.Relations) == 0 || len(t.Relations) > MaxRelations:
		return fmt.Errorf("there are %d relations, and there may be 1 to %d", len(t.Relations), MaxRelations)
	}
	known, all, columns := map[string]bool{}, uint64(0), 0
	for _, of := range t.Vertices {
		if err := checkKeptName(of.Name); err != nil {
			return err
		}
		if known[of.Name] {
			return fmt.Errorf("the type %s occurs twice", of.Name)
		}
		if of.Vertices > MaxVertices || of.Features < 1 || of.Features > MaxVertices || of.First != columns {
			return fmt.Errorf("the type %s has %d vertices and %d features from column %d on", of.Name, of.Vertices, of.Features, of.First)
		}
		known[of.Name] = true
		all += of.Vertices
		columns += of.Features
	}
	if all != vertices || columns != features {
		return fmt.Errorf("the types have %d vertices with %d features, and the graph has %d with %d", all, columns, vertices, features)
	}
	names := map[string]bool{}
	for _, r := range t.Relations {
		if err := checkKeptName(r.Name); err != nil {
			return err
		}
		if !known[r.Source] || !known[r.Target] {
			return fmt.Errorf("the relation %s leads between unknown types", r)
		}
		if names[r.String()] {
			return fmt.Errorf("the relation %s occurs twice: rename one of the two, or leave {dataset.undirected} out if edges back are there", r)
		}
		names[r.String()] = true
	}
	return t.checkGiven()
}

// CheckTypeName returns an error unless a type or a relation of a source may be called so.
func CheckTypeName(name string) error {
	if err := checkKeptName(name); err != nil {
		return err
	}
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("the name %.40q of a type or relation is blank: give it one with letters or digits", name)
	}
	return nil
}

// edgesBack begins the names of relations of edges back.
const edgesBack = "rev-"

// Back returns the relation of the edges of this one the other way round. It is the same one where
// both ends are of one type. It returns an error if its name would be too long.
func (r Relation) Back() (Relation, error) {
	if r.Source == r.Target {
		return r, nil
	}
	if most := MaxTypeName - len(edgesBack); len(r.Name) > most {
		return r, fmt.Errorf("the relation %.40q from %.40q to %.40q has a name of %d bytes, and with {dataset.undirected}, which puts %s before it, it may have %d: shorten it", r.Name, r.Source, r.Target, len(r.Name), edgesBack, most)
	}
	return Relation{Source: r.Target, Name: edgesBack + r.Name, Target: r.Source, Edges: r.Edges}, nil
}

// checkKeptName returns an error unless a type or a relation of a dataset that is there may be called
// so. Datasets from before blank names were refused may have some.
func checkKeptName(name string) error {
	if name == "" || len(name) > MaxTypeName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%.40q is no name of a type or relation: give 1 to %d bytes of text", name, MaxTypeName)
	}
	return nil
}

// Place returns the place of the relation that is called so, by its name alone or with the types
// between which it leads.
func (t *Types) Place(name string) (int, error) {
	const shown = 8
	found := -1
	var names []string
	for i, r := range t.Relations {
		if len(names) < shown {
			names = append(names, r.Name)
		}
		switch {
		case r.String() == name:
			return i, nil
		case r.Name != name:
		case found >= 0:
			return 0, fmt.Errorf("both %s and %s are called %s: give the whole name", t.Relations[found], r, name)
		default:
			found = i
		}
	}
	if found < 0 {
		more := ""
		if n := len(t.Relations) - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return 0, fmt.Errorf("no relation is called %.80s: the dataset has %s%s", name, strings.Join(names, ", "), more)
	}
	return found, nil
}

// Ends returns the number of the type at which each relation ends, as a spec of a model has them;
// "" of triples, where all end at one.
func (t *Types) Ends() string {
	if t.Given != nil {
		return ""
	}
	return t.numbers(func(r *Relation) string { return r.Target })
}

// Starts is Ends for the types at which relations begin.
func (t *Types) Starts() string {
	if t.Given != nil {
		return ""
	}
	return t.numbers(func(r *Relation) string { return r.Source })
}

// numbers returns the number of a type of each relation.
func (t *Types) numbers(of func(*Relation) string) string {
	words := make([]string, 0, len(t.Relations))
	for i := range t.Relations {
		name := of(&t.Relations[i])
		at := slices.IndexFunc(t.Vertices, func(of VertexType) bool { return of.Name == name })
		words = append(words, strconv.Itoa(at))
	}
	return strings.Join(words, ",")
}

// A FeatureRange is some consecutive features. Alike says that all vertices that have these features have
// the same ones.
type FeatureRange struct {
	First, Count int
	Alike        bool
}

// Sources returns which features vertices have at which each relation begins: all others are zeros.
// It is nil for triples, whose entities are of one type.
func (t *Types) Sources() []FeatureRange {
	if t == nil || t.Given != nil {
		return nil
	}
	columns := make([]FeatureRange, 0, len(t.Relations))
	for _, r := range t.Relations {
		at := slices.IndexFunc(t.Vertices, func(of VertexType) bool { return of.Name == r.Source })
		columns = append(columns, FeatureRange{t.Vertices[at].First, t.Vertices[at].Features, t.Vertices[at].Bare})
	}
	return columns
}

// Text returns the types in the form in which shard files and the plan keep them; "" for nil.
func (t *Types) Text() (string, error) {
	if t == nil {
		return "", nil
	}
	short := *t
	if len(t.Vertices) == 1 { // between which all relations are
		short.Relations = slices.Clone(t.Relations)
		for i := range short.Relations {
			short.Relations[i].Source, short.Relations[i].Target = "", ""
		}
	}
	text, err := json.Marshal(&short)
	if err != nil {
		return "", fmt.Errorf("write the types of a graph: %w", err)
	}
	if len(text) > MaxTypesText {
		return "", fmt.Errorf("the names of all types and relations take %d bytes, and at most %d may be: make them shorter or fewer", len(text), MaxTypesText)
	}
	return string(text), nil
}

// MaxTypesBytes bounds what types take in a header, which is JSON: so each quote of their text takes two
// bytes.
const MaxTypesBytes = 2*MaxTypesText + 2

// bytes returns what the types take in a header.
func (t *Types) bytes() int {
	text, err := t.Text()
	if err != nil || text == "" {
		return 0
	}
	quoted, _ := json.Marshal(text) // strings never fail
	return len(quoted)
}

// ParseTypes is the inverse of Types.Text.
func ParseTypes(text string, vertices uint64, features int) (*Types, error) {
	if text == "" {
		return nil, nil
	}
	t := &Types{}
	if len(text) > MaxTypesText {
		return nil, fmt.Errorf("the types take %d bytes, and at most %d may be", len(text), MaxTypesText)
	}
	if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, fmt.Errorf("the types are not readable: %w", err)
	}
	if len(t.Vertices) == 1 {
		for i := range t.Relations {
			r := &t.Relations[i]
			r.Source, r.Target = cmp.Or(r.Source, t.Vertices[0].Name), cmp.Or(r.Target, t.Vertices[0].Name)
		}
	}
	return t, t.Check(vertices, features)
}

// Related holds the relations of a shard's in-edges.
type Related struct {
	Count int  // of the graph's relations, or of the numbers of triples
	Given bool // edges are triples with a given split: see Types.Numbers
	// Types are those of the graph; nil: they are not known, as those of triples, which say nothing of
	// features and may be many.
	Types *Types
	// Of is the relation of each edge, a whole number below Count, in the form of weights, so that
	// it travels wherever they do; nil if the edges are not here.
	Of []float32
}

// TypesOf returns the types of the graph that shards are of; nil: it has none, or they are not known.
func TypesOf(shards []*Shard) *Types {
	if r := shards[0].Related; r != nil {
		return r.Types
	}
	return nil
}

// Related returns how many relations the edges have; nil: they have none.
func (m *Meta) Related() *Related {
	if m.Types == nil {
		return nil
	}
	return &Related{Count: m.Types.Numbers(), Given: m.Types.Given != nil}
}

// WeightsName returns what the array of the weights of edges is called in a shard.
func (m *Meta) WeightsName() string {
	if m.Types != nil {
		return "relations"
	}
	return "weights"
}

var errRelations = errors.New("relations of edges and weights can't be in one shard")

// loadRelations reads the relations of the edges, and checks the rows, in which a source may
// stand once for each relation.
func loadRelations(s *Shard) (err error) {
	if s.file.Has("weights") {
		return errRelations
	}
	if s.Related.Of, err = view[float32](s, "relations", len(s.Indices)); err != nil {
		return err
	}
	of, count := s.Related.Of, float32(s.Related.Count)
	for row := range len(s.Indptr) - 1 {
		last, before := int64(-1), count // so that a source below 0 does not ascend
		for e := s.Indptr[row]; e < s.Indptr[row+1]; e++ {
			i, r := int64(s.Indices[e]), of[e]
			if !(r >= 0 && r < count) || float64(r) != math.Trunc(float64(r)) {
				return fmt.Errorf("an edge of row %d has the relation %v of %d", row, r, s.Related.Count)
			}
			if i < last || i == last && r <= before || i >= int64(s.Total) {
				return fmt.Errorf("tensor %q has %d in row %d, which does not ascend below %d", "indices", i, row, s.Total)
			}
			last, before = i, r
		}
	}
	return nil
}

// Order sorts the relations of edges that are equal, as equal keys say, and that follow one another.
// Sources yield the edges of their relations in any order.
func (t *Types) Order(keys []uint64, relations []float32) {
	if t == nil {
		return
	}
	for first := 0; first < len(keys); {
		end := first + 1
		for end < len(keys) && keys[end] == keys[first] {
			end++
		}
		slices.Sort(relations[first:end])
		first = end
	}
}
