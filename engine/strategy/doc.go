// Package strategy says how nodes share the steps of a job: what they are told of it
// (Work), who computes which roots (Strategy, Dealer), and how they ask each other
// (Peers).
//
// It knows no network and no plan: node brings both in these terms. The strategies
// themselves are packages below it.
package strategy
