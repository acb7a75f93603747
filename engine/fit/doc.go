// Package fit makes a run fit the memory of its nodes: it knows what a run needs, what it can
// give up and still learn the same, and what to change where that is too little.
package fit
