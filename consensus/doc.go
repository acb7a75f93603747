// Package consensus agrees on the plan through Raft: it keeps the log, elects a
// leader, applies what is committed to plan.State, and sees to it that the right
// nodes vote. It is neither a network nor a membership list: how nodes are
// reached and who is alive, it is told through Config. What the plan means is
// package plan's. DESIGN.md says why things are as they are.
package consensus
