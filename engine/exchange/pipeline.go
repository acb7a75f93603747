package exchange

// The lanes of pipe. Its steps are epochs, and its Index says what of an epoch is offered.
const (
	LaneBoundary uint8 = 32 + iota // rows between stages, and their gradients
	LaneMirror                     // rows between the ways of a stage, and their gradients
	LanePiece                      // columns of what a node of a stage has made of its gradient
	LaneTotal                      // and of what has been added up
	LaneEarly                      // rows of which histories are made, before an epoch
)

// Fold adds up rows as the tree does, and leaves the sum in the first: each is the sum of
// a span that begins at a leaf. They ascend.
func Fold[T Number](leaves []int, rows [][]T) {
	pieces := make([]piece, len(rows))
	for i, row := range rows {
		pieces[i] = piece{first: leaves[i], row: raw(row)}
	}
	fold[T](pieces)
}
