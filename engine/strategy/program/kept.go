package program

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
)

// kept is what a program keeps, with the place from where it goes on. It is a
// checkpoint.Extra: a file has numbers only, so each holds two bytes, as a whole number.
type kept struct {
	learner *train.Learner
	any     bool // something was kept in this run

	state []byte // nil: the program has kept nothing
	chain [sha256.Size]byte
	at    trained.State

	// What was kept once all steps of an epoch were done, which counts as of the beginning
	// of the next epoch. ended is the epoch; 0: there is nothing.
	ended int
	last  []byte
	sums  [sha256.Size]byte
}

// keep keeps a state after so many steps of the epoch, with the digest of all sums so far.
func (k *kept) keep(state []byte, done int, chain [sha256.Size]byte) {
	if !k.any {
		// Until the nodes have confirmed that their shards are whole, an interruption goes back
		// to the last checkpoint. To write one makes them confirm it.
		k.any, k.learner.Run.Together = true, true
	}
	if done < k.learner.Run.Batches.Steps {
		k.state, k.chain, k.at, k.ended = state, chain, k.learner.At, 0
		k.at.Step = done
		return
	}
	k.last, k.sums, k.ended = state, chain, k.learner.At.Epoch
}

// settle has what was kept at the end of an epoch count, if that is over.
func (k *kept) settle() {
	if at := &k.learner.At; k.ended > 0 && at.Epoch == k.ended+1 && at.Step == 0 {
		k.state, k.chain, k.at, k.ended, k.last = k.last, k.sums, *at, 0, nil
	}
}

// common reports whether the job would go on from here.
func (k *kept) common() bool {
	k.settle()
	at := &k.learner.At
	return at.Epoch == k.at.Epoch && at.Step == k.at.Step
}

// back returns to where the job goes on from.
func (k *kept) back() {
	k.settle()
	l := k.learner
	if l.At.Diverged != nil || l.Done() {
		return
	}
	l.At = k.at
	l.History = slices.DeleteFunc(l.History, func(e trained.Epoch) bool { return e.Epoch >= k.at.Epoch })
}

// What files have.
const (
	aboutPrefix = "program.about."
	statePrefix = "program.state."

	aboutNumbers = 1 + 2 + sha256.Size/2 // whether there is a state; its size; the digest
)

func params(numbers int) []nn.Param { return []nn.Param{{Name: "bytes", Rows: 1, Cols: numbers}} }

// numbersOf returns how many numbers hold so many bytes: one at least.
func numbersOf(bytes int) int { return max(1, (bytes+1)/2) }

// Sections implements checkpoint.Extra.
func (k *kept) Sections(int) []checkpoint.Section {
	return []checkpoint.Section{
		{Prefix: aboutPrefix, Params: params(aboutNumbers), Read: func(to []float32) []float32 {
			there := float32(0)
			if k.state != nil {
				there = 1
			}
			to = append(to[:0], there, float32(len(k.state)>>16), float32(len(k.state)&0xffff))
			return pack(to, k.chain[:])
		}},
		{Prefix: statePrefix, Params: params(numbersOf(len(k.state))), Read: func(to []float32) []float32 {
			if to = pack(to[:0], k.state); len(to) == 0 {
				to = append(to, 0)
			}
			return to
		}},
	}
}

// pack appends two bytes to each number.
func pack(to []float32, bytes []byte) []float32 {
	for ; len(bytes) > 1; bytes = bytes[2:] {
		to = append(to, float32(uint16(bytes[0])|uint16(bytes[1])<<8))
	}
	if len(bytes) > 0 {
		to = append(to, float32(bytes[0]))
	}
	return to
}

// unpack returns so many bytes of numbers, of which there are enough.
func unpack(from []float32, bytes int) ([]byte, error) {
	to := make([]byte, 0, len(from)*2)
	for _, x := range from {
		n := uint16(max(0, min(x, 1<<16-1)))
		if float32(n) != x {
			return nil, fmt.Errorf("it has %g in the state of a program, where whole numbers below %d are", x, 1<<16)
		}
		to = append(to, byte(n), byte(n>>8))
	}
	return to[:bytes], nil
}

// Read implements checkpoint.Extra.
func (k *kept) Read(f *checkpoint.File, _ int) ([][]float32, error) {
	about, err := f.Row(aboutPrefix, params(aboutNumbers), aboutNumbers)
	if err != nil {
		return nil, err
	}
	bytes, err := sizeOf(about)
	if err != nil {
		return nil, err
	}
	n := numbersOf(bytes)
	state, err := f.Row(statePrefix, params(n), n)
	if err != nil {
		return nil, err
	}
	for _, row := range [][]float32{about, state} {
		if _, err := unpack(row, 0); err != nil {
			return nil, err
		}
	}
	return [][]float32{about, state}, nil
}

// sizeOf returns the size of a state.
func sizeOf(about []float32) (int, error) {
	size := float64(about[1])*(1<<16) + float64(about[2])
	if !(size >= 0 && size <= desk.MostBytes) || size != float64(int(size)) {
		return 0, fmt.Errorf("it has a program's state of %g bytes, and %d is the most", size, desk.MostBytes)
	}
	return int(size), nil
}

// Adopt implements checkpoint.Extra. The rows have been checked.
func (k *kept) Adopt(rows [][]float32, _ int) {
	about, state := rows[0], rows[1]
	k.state, k.at, k.ended, k.last = nil, k.learner.At, 0, nil
	if bytes, err := sizeOf(about); err == nil && about[0] != 0 {
		k.state, _ = unpack(state, bytes)
	}
	chain, _ := unpack(about[3:], sha256.Size)
	copy(k.chain[:], chain)
}

// MaxBytes implements checkpoint.Extra.
func (k *kept) MaxBytes() uint64 { return 2*desk.MostBytes + 4*(1+aboutNumbers) }
