// Package budget decides how much memory a run needs and may take. Needs adds up what a
// run takes, by kind; Agree has the nodes of a run compare that with the memory of their
// machines before any of them takes some; Short is the error of a run that lacks memory.
// It knows nothing of how a run trains.
package budget
