//go:build cuda

package device

import (
	"math"

	"github.com/hopmesh/hopmesh/cuda/driver"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

var _ tensor.Teller = (*Device)(nil)

// answers holds the results of losses and of Finite in the GPU's memory: a double and a
// long long of sums, and an int that is not 0 if something is not finite.
type answers struct {
	there driver.Memory
	asked bool // Told will read them later
}

const (
	oddAt       = tallyBytes
	answerBytes = tallyBytes + 4
)

func (a *answers) loss() address { return address(a.there.Address()) }
func (a *answers) odd() address  { return a.loss().plus(oddAt) }

// Ask implements tensor.Teller.
func (d *Device) Ask() {
	if !d.begin() {
		return
	}
	defer d.end()
	d.forget()
	d.answers.asked = true
}

// Told implements tensor.Teller.
func (d *Device) Told() (loss float64, right int, finite bool) {
	d.answers.asked = false
	if !d.begin() {
		return 0, 0, false
	}
	defer d.end()
	return d.told()
}

// forget clears the answers, unless Told will read them later.
func (d *Device) forget() {
	if !d.answers.asked {
		d.clear(d.answers.loss(), answerBytes)
	}
}

// told waits for the answers and returns them, unless Told will read them later.
func (d *Device) told() (loss float64, right int, finite bool) {
	if d.answers.asked {
		return 0, 0, true
	}
	p := d.fetch(d.answers.loss(), answerBytes)
	if p.Len() == 0 {
		return 0, 0, false
	}
	sums, odd := driver.Numbers[uint64](p.Slice(0, oddAt)), driver.Numbers[int32](p.Slice(oddAt, answerBytes))
	return math.Float64frombits(sums[0]), int(sums[1]), odd[0] == 0
}
