// Package peers brings the questions that the nodes of a job ask each other over the
// mesh: it is the strategy.Peers of every job that runs here.
//
// It knows which jobs run here and in which generation, and nothing of what is asked.
// Who runs a job, the plan says; when a session opens and closes, node/jobs.
package peers
