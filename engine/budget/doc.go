// Package budget decides how much memory a run needs and may take. Needs adds up what a
// run takes, by kind; Agree has the nodes of a run compare that with the memory of their
// machines before any of them takes some; Short is the error of a run that lacks memory.
// It knows nothing of how a run trains.
//
// It also keeps the account of this process: Granted is what it may hold, Govern has it
// keep to that, Outside counts what it takes beside the Go heap, Tidy has the heap keep
// little garbage while a run trains, Begin says that something takes memory which is given
// back at its end, and Peak measures what that came to. Arenas that get no memory fail with
// Exhausted.
package budget
