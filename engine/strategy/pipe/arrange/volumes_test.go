package arrange

import "testing"

// Reddit's numbers, as the authors' logs have them, in GiB.
func TestVolumesAsLogged(t *testing.T) {
	const gib = 1 << 30
	near := func(what string, got uint64, want float64) {
		if x := float64(got) / gib; x < 0.995*want || x > 1.005*want {
			t.Errorf("%s: %.3f GiB, want %.3f", what, x, want)
		}
	}
	s := Sizes{Stages: 1, Ways: 8, Nodes: 8, Vertices: 232965, Mirrors: 607420, Layers: 32, Hidden: 100, Number: 4, Tensors: 1}
	near("graph", s.Of().Total(), 14.482)
	s.Stages, s.Ways, s.Mirrors = 8, 1, 0
	near("pipe", s.Of().Total(), 1.215)
	s.Tensors = 2
	near("pipe, GCNII", s.Of().Total(), 2.43)
}
