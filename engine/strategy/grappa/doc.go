// Package grappa is Grappa's way: groups of shards train in isolation, each with what
// else it has been given to see, and only gradients travel in a step. What a group sees
// changes from time to time, and what it does not see is made up for by weights.
//
// It is the pure part: which shards a group sees when (Schedule), which rows and edges
// that comes to (Builder, Context), who computes it (Dealer), and what losses count
// (Corrector). It brings nothing and trains nothing.
package grappa
