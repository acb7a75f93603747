// Package read opens graphs as people have them: NumPy archives, the raw files of
// Planetoid and of the Open Graph Benchmark, delimited text, and Parquet. Each
// becomes a graph.Source that streams what is large.
//
// Nothing in a file is trusted: what it says of its sizes is compared with how
// large it is before memory is taken, and of Python's pickles only data is read.
// Nothing is converted behind the user's back either: what can be taken in two
// ways is noted, what can't be taken is refused in a sentence that says where it
// stands and what to do. The package does not mirror or merge edges, and writes
// nothing.
package read
