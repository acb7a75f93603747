// Package jobs runs the training jobs that the plan gives to this node, and reports
// of them.
//
// It does what the plan says and decides nothing: which job runs where is the
// leader's word, what is learnt the engine's. A job whose node ends goes on from its
// last checkpoint when the node is back.
//
// Of a job that several nodes share, each runs its part in one generation, and the first
// of them tells what comes of it. What is wrong with a node itself ends the job; where
// nodes don't reach each other, one of them asks the leader for a new generation.
package jobs
