// Package peers carries the questions that the nodes of a job ask each other over the
// mesh. It provides the peer.Peers of every job that runs here.
//
// It knows which jobs run here and in which generation, but not what the questions mean.
// The plan decides who runs a job, and node/jobs opens and closes the sessions.
package peers
