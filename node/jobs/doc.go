// Package jobs runs the training jobs that the plan assigns to this node, and reports
// their progress and results.
//
// It follows the plan and decides nothing: the leader decides which job runs where, and
// the engine trains. When a node restarts, its job resumes from the last checkpoint.
//
// When several nodes share a job, each runs its part in one generation, and the first
// node reports the results. A fault of a node itself ends the job. When nodes can't reach
// each other, one of them asks the leader for a new generation.
package jobs
