package pipe

import (
	"math"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// shortest is what something takes that nothing comes between.
func shortest(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	return slices.Min(seconds)
}

// settle says what each takes, by what it took. A processor that others use, too, or of
// which there is a share, stands still now and then: for some layers for longer than they
// take, for most not at all. So each is what it takes by itself, as much longer as all took
// in the sum that are about as long: what is long has stood still by itself.
func (r *rehearsal) settle() {
	type sums struct{ took, alone float64 }
	about := map[int]sums{}
	of := func(t *times) int {
		_, exponent := math.Frexp(shortest(t.all))
		return exponent
	}
	for _, t := range r.timed() {
		s := about[of(t)]
		s.alone += float64(len(t.all)) * shortest(t.all)
		for _, seconds := range t.all {
			s.took += seconds
		}
		about[of(t)] = s
	}
	for _, t := range r.timed() {
		if s := about[of(t)]; s.alone > 0 {
			t.alone = shortest(t.all) * s.took / s.alone
		}
	}
}

// timed is all that was.
func (r *rehearsal) timed() []*times {
	all := []*times{&r.shards, &r.clears}
	for _, a := range r.acts {
		for i := range a.times {
			all = append(all, &a.times[i])
		}
	}
	return all
}

// times are how long something took whenever it was done, and how long it takes.
type times struct {
	all   []float64
	alone float64
}

// A watch tells how long it is since it was asked last.
type watch time.Time

func started() watch { return watch(time.Now()) }

func (w *watch) lap() float64 {
	now := time.Now()
	took := now.Sub(time.Time(*w)).Seconds()
	*w = watch(now)
	return took
}

func (r *rehearsal) note(of *times, seconds float64) {
	of.all = append(of.all, seconds)
	if !r.until.IsZero() && !r.over() {
		r.took, r.due = r.took+seconds, r.due+of.alone
	}
}

// rest times what is done of no layer.
func (r *rehearsal) rest() (of rest) {
	of.Shard = r.shards.alone
	for _, l := range r.levels {
		if l != nil && l.rows.Rows*l.rows.Cols > 0 {
			of.Row = each(l.rows.Rows*l.rows.Cols, func() { r.Device.Combine(l.back, 1, l.rows, 0, tensor.Matrix{}) })
			break
		}
	}
	const leaves = 4
	size := r.Model.Size()
	adds, row := exchange.NewSummer[float32](size), make([]float32, size)
	of.Sum = each(leaves*size, func() {
		adds.Begin([]exchange.Span{{First: 0, Level: 2}})
		for leaf := range leaves {
			copy(adds.Row(leaf), row)
		}
		adds.Sums()
	})
	// An update goes through weights, gradients and two moments.
	const passes = 6
	of.Step = passes * each(1, func() { r.Device.Finite(r.Weights) })
	return of
}

// each is how long something takes for each of so many numbers, on average: it is done for
// long enough that a processor's stands are in it.
func each(numbers int, do func()) float64 {
	const enough, most = 50 * time.Millisecond, 200
	do()
	times, begin := 0, time.Now()
	for times < most && time.Since(begin) < enough {
		do()
		times++
	}
	return time.Since(begin).Seconds() / float64(times*numbers)
}
