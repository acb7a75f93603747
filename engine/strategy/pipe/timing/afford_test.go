package timing

import (
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe/census"
)

// The more room, and the narrower the model, the more shards can be computed. What they take is
// within the room.
func TestChoose(t *testing.T) {
	c := &census.Census{Firsts: []uint32{0, 100, 100_100, 100_200}, Sources: []int{300, 100_100, 300}, Entries: []int{900, 900_000, 900}}
	for _, w := range []struct {
		hidden int
		room   uint64
		want   []int
	}{
		{16, 1 << 40, []int{0, 1, 2}}, {16, 24 << 20, []int{0, 2}}, {1024, 24 << 20, nil}, {16, 1, nil},
	} {
		spec := nn.Defaults("gcn")
		spec.Hidden, spec.Layers = w.hidden, 3
		m, err := nn.New(spec, 32, 4)
		if err != nil {
			t.Fatal(err)
		}
		got, takes := Choose([]int{0, 1, 2}, c, m, 0, w.room)
		if !slices.Equal(got, w.want) {
			t.Errorf("%d columns in %d bytes: %v, not %v", w.hidden, w.room, got, w.want)
		}
		if takes > w.room || takes > 0 != (got != nil) {
			t.Errorf("%v take %d of %d bytes", got, takes, w.room)
		}
	}
}
