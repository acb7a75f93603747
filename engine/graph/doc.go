// Package graph defines a dataset: a Source while it is imported, shard files once it is,
// and the manifest that describes them. Package graph/read reads formats, graph/generate
// generates graphs, and graph/build converts a Source into shards.
package graph
