// Package grappa implements Grappa: groups of shards train in isolation, each with the
// other shards that it has been given, and only gradients travel in a step. The given
// shards change from time to time, and weights make up for what a group does not see.
//
// Pure parts say which shards a group sees when (Schedule), find their rows and edges
// (Builder, Context), deal groups to nodes (Deal), and weigh losses (Corrector). Method
// trains: it fetches what the groups of a node see (View), and is a batched.Batched whose
// rows come from there.
package grappa
