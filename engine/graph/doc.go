// Package graph is what a dataset is: a Source while it comes in, shards in files
// when it is in, and the manifest that describes them. Formats are read in
// graph/read, graphs are made up in graph/generate, and graph/build turns a
// Source into shards.
package graph
