package mapped

import "context"

// pieceSize is how much of a mapping Stream has the disk read ahead.
const pieceSize = 4 << 20

// Stream passes all of a mapping to a function, in order and in pieces, and copies nothing. The
// pages stay mapped, so whoever reads them afterwards need not wait for them. The error is that of
// ctx, or of reading the file.
func Stream(ctx context.Context, memory []byte, each func(piece []byte)) (err error) {
	defer End(Guard())
	defer Caught(&err)
	for len(memory) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		piece := memory[:min(pieceSize, len(memory))]
		memory = memory[len(piece):]
		fetch(memory[:min(pieceSize, len(memory))])
		each(piece)
	}
	return nil
}
