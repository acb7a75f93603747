// Package shards keeps this node's shard files as the plan wants them: fetches
// what is missing, serves what others ask for, removes what nobody wants.
//
// It decides nothing: who shall hold which shard, the plan says, and what is here
// the leader is told. A file under its final name is whole and was verified once;
// everything else has another name. It does not read what is in a shard.
package shards
