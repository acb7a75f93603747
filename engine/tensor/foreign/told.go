package foreign

import "github.com/hopmesh/hopmesh/engine/tensor"

var _ tensor.Teller = (*Device)(nil)

// answers are deferred results.
type answers struct {
	asked bool
	loss  float64
	right int
	odd   bool
}

// Ask implements tensor.Teller.
func (d *Device) Ask() {
	if d.works() {
		d.answers = answers{asked: true}
	}
}

// Told implements tensor.Teller.
func (d *Device) Told() (loss float64, right int, finite bool) {
	a := d.answers
	d.answers = answers{}
	if !d.works() {
		return 0, 0, false
	}
	return a.loss, a.right, !a.odd
}

// judged returns or defers the result of a loss.
func (d *Device) judged(loss float64, right int) (float64, int) {
	if !d.answers.asked {
		return loss, right
	}
	d.answers.loss += loss
	d.answers.right += right
	return 0, 0
}

// found returns or defers the result of Finite.
func (d *Device) found(finite bool) bool {
	if !d.answers.asked {
		return finite
	}
	d.answers.odd = d.answers.odd || !finite
	return true
}
