package graph

import (
	"encoding/json"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// arrays describes what the tensors of a shard file hold. Row v is the vertex
// first_vertex + v.
var arrays = map[string]string{
	"indptr":               "the in-edges of row v are the entries indptr[v] to indptr[v+1] of indices and weights",
	"indices":              "the source of each edge, as its number in the whole graph",
	"weights":              "the weight of each edge; without this array all are 1",
	"relations":            "the relation of each edge, by its place among the relations that \"types\" lists",
	"edge_features":        "a row with the features of each edge",
	"features":             "the features of row v",
	"features.indptr":      "the features of row v that are not zero are the entries features.indptr[v] to features.indptr[v+1] of features.indices and features.values",
	"features.indices":     "the column of each feature that is not zero",
	"features.values":      "the value of each feature that is not zero",
	"labels":               "the class of row v from 0, or -1 where there is none",
	"targets":              "a column for each target of row v: 0 or 1, or 255 where it is missing; or a number, or NaN where it is missing. \"classes\" is how many columns there are",
	"splits":               "a row for each split and a column for each row v: 0 in no part, 1 training, 2 validation, 3 test",
	"original_ids":         "the id of row v in the source",
	"original_ids.offsets": "the id of row v in the source is the UTF-8 text in the bytes original_ids.offsets[v] to original_ids.offsets[v+1] of original_ids.bytes",
	"original_ids.bytes":   "the ids of the source, one after another",
}

// arraysOfTriples describes relations where edges are triples with a given split.
const arraysOfTriples = "the number of each edge: with R relations that \"types\" lists, below R it is the relation of a triple for training, below 2R the same from tail to head, below 3R of one for validation, and below 4R of one for test"

// sizes returns the fields of the metadata that shard files and skeletons share.
func (s *Shard) sizes(format string) map[string]string {
	sizes := map[string]string{
		"format":         format,
		"shards":         strconv.Itoa(s.Shards),
		"shard":          strconv.Itoa(s.Number),
		"first_vertex":   strconv.FormatUint(uint64(s.First), 10),
		"vertices":       strconv.Itoa(s.Vertices),
		"total_vertices": strconv.FormatUint(uint64(s.Total), 10),
		"features":       strconv.Itoa(s.Features),
		"classes":        strconv.Itoa(s.Classes),
		"dtype":          string(s.DType),
	}
	if s.Targets != OneClass {
		sizes["targets"] = string(s.Targets)
	}
	if s.Related != nil {
		sizes["relations"] = strconv.Itoa(s.Related.Count)
		if s.Related.Given {
			sizes["triples"] = "given"
		}
	}
	if n := s.EdgeRows.Columns; n > 0 {
		sizes[EdgeFeatures] = strconv.Itoa(n)
	}
	return sizes
}

// Metadata returns the metadata of the shard's file, with a description of its tensors
// for whoever opens it elsewhere. Only its numbers need be set.
func (s *Shard) Metadata(tensors []safetensors.Tensor) (map[string]string, error) {
	about := map[string]string{}
	for _, t := range tensors {
		about[t.Name] = arrays[t.Name]
		if t.Name == "relations" && s.Related != nil && s.Related.Given {
			about[t.Name] = arraysOfTriples
		}
	}
	text, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	metadata := s.sizes(ShardFormat)
	metadata["arrays"] = string(text)
	return metadata, nil
}
