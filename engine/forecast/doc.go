// Package forecast predicts what an epoch of a job takes on meshes that are not there:
// bytes by kind, memory of a node and time. It samples batches of a graph that is here,
// deals them to virtual nodes as the strategies do, and counts. Nothing is sent. See
// DESIGN.md.
package forecast
