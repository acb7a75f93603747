// Package desk is where a run meets the program that computes its steps. The program
// attaches to the node and asks, one question after the other; the run answers. What is
// large lies in memory that both map. Runs come and go while a program stays attached.
//
// A program is not trusted: it may leave at any time, ask nonsense, and change the memory
// while it is read. No run waits until a program has read an answer.
package desk
