package recipe

// Computing is the number of what this program computes: two programs with the same number come
// to the same bits from the same recipe, and understand each other while they do. It is raised
// when a hash of engine/golden changes, a recipe comes to mean something else, or the nodes of
// a job tell each other something else. A job runs only on nodes that compute by its number.
var Computing = 3

// Continues is the least number of which this program goes on with jobs once no node computes by it
// any more: their recipes mean the same to it, and it reads their checkpoints. It is raised to
// Computing when one of these no longer holds.
const Continues = 1
