// Package jobs runs the training jobs that the plan gives to this node, and reports
// of them.
//
// It does what the plan says and decides nothing: which job runs where is the
// leader's word, what is learnt the engine's. A job whose node ends goes on from its
// last checkpoint when the node is back.
package jobs
