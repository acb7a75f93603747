// Package gather brings the input rows of vertices that are elsewhere, and serves
// those that are here: one question to each owner for all that is wanted at a time,
// all owners at once.
//
// A question is the ids of vertices, four bytes each; which rows they are, and how they
// are written, is engine/features' (see features.Form). An answer of dense rows has the
// length that both sides know; one of sparse rows may hold fewer than were asked for,
// where all would be too long, and then the rest is asked for again.
package gather
