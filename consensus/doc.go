// Package consensus replicates the plan through Raft: it keeps the log, elects a
// leader, applies committed commands to plan.State, and decides which nodes vote. It is
// neither a network nor a membership list: the transport and the liveness of nodes come
// in through Config. The meaning of the plan belongs to package plan. DESIGN.md gives
// the reasons.
package consensus
