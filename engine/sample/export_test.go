package sample

// RMAT makes the graph that bounds are for.
var RMAT = rmat
