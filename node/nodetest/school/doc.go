// Package school replaces the engine in tests of the code around it. Its epochs take a
// configured time, its checkpoints hold only the history of epochs, and nodes that share
// a job wait for each other as the engine's do. Only tests import it.
package school
