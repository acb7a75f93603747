// Package outlook forecasts jobs that train by pipe or graph: bytes by the plan that nodes
// follow, memory and time by counts of each shard. It needs no nodes, and for a graph that
// is only known by its shape no edges.
package outlook
