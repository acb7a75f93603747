// Package pipe trains on the whole graph at once, as a pipeline of layers: GNNPipe. A
// stage has consecutive layers, and in each stage a way has a part of the vertices, so
// that stages x ways nodes work. One stage alone is graph parallelism, which is the
// strategy graph.
//
// Vertices are in chunks, which are runs of shards. Chunks at the same position of their
// ways are computed together, layer by layer, and see each other's rows of now. What they
// see of other chunks are the rows that those have left: of now, if they have had their
// turn in this epoch, else those of a history. So all chunks go forward through all
// stages, then all go backward in exactly the reversed order, and then there is one update.
//
// What is learnt depends on the graph, the ways, the chunks and the settings, and not on
// how many stages or nodes there are: gradients are added up by shards, in a fixed tree.
//
// It knows neither files nor recipes: engine/train gives it features, labels and a loss.
package pipe
