// Package plots divides the memory of one arena among many that are small, each of which would
// take a whole number of huge pages by itself.
package plots

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// line is what matrices are aligned to.
const line = 128

// Round returns what a plot of so many bytes takes.
func Round(bytes int) int { return (bytes + line - 1) / line * line }

// A plot is an arena in the memory of another one. What it has no room for comes from an arena of
// its own.
type plot struct {
	device tensor.Device
	memory []byte
	used   int
	more   tensor.Arena
}

// New returns an arena over memory of an arena in the host's memory, which must live longer.
func New(d tensor.Device, memory []byte) tensor.Arena { return &plot{device: d, memory: memory} }

// Alloc implements tensor.Arena.
func (p *plot) Alloc(t tensor.Type, rows, cols int) tensor.Matrix {
	bytes := max(line, Round(rows*cols*t.Bytes()))
	if p.used+bytes <= len(p.memory) {
		base := unsafe.Pointer(&p.memory[p.used])
		p.used += bytes
		return tensor.Over(t, rows, cols, cols, base)
	}
	if p.more == nil {
		more, err := p.device.NewArena(bytes)
		if err != nil {
			panic(err) // as arenas do
		}
		p.more = more
	}
	return p.more.Alloc(t, rows, cols)
}

// Reset implements tensor.Arena.
func (p *plot) Reset() {
	p.used = 0
	if p.more != nil {
		p.more.Reset()
	}
}

// Bytes implements tensor.Arena.
func (p *plot) Bytes() int {
	n := len(p.memory)
	if p.more != nil {
		n += p.more.Bytes()
	}
	return n
}

// Close implements tensor.Arena. The memory stays with the arena that it is of.
func (p *plot) Close() {
	if p.more != nil {
		p.more.Close()
	}
	*p = plot{device: p.device}
}
