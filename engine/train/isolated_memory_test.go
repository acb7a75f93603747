package train

import (
	"context"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategy"
)

// What scenes take is told before the first step, within a tenth.
func TestForecastOfScenes(t *testing.T) {
	shards := communities(t, 6000)
	for name, g := range map[string]strategy.GrappaSettings{
		"halo": {Period: 1, Swept: 1}, "strict": {Period: 1, Swept: 1, Loader: strategy.Strict}, "sampled": {Period: 1, Swept: 1, Loader: strategy.HaloSampled, Cap: 200},
	} {
		r := short("sage")
		r.Sharing, r.Epochs = apart(g), 20
		m := newMesh(3, []int{0, 0, 1, 1, 2})
		all := m.start(t, r, shards, isolation(Options{Threads: 1}))
		err := m.each(func(node int) error {
			n := all[node].isolated
			told, most := n.forecast(), uint64(0)
			for super := range n.schedule.Slots() {
				s, err := n.bring(context.Background(), super, nil)
				if err != nil {
					return err
				}
				most = max(most, s.bytes())
			}
			if is := n.scenes()*most + n.lacking.Bytes() + n.seen.bytes(); told > is*11/10 || told < is*9/10 {
				t.Errorf("%s, node %d: %d bytes are told, and it takes %d", name, node, told, is)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Where memory is too small for the halo, that is said before its rows are brought, with
// what would fit.
func TestTooLittleMemoryForTheHalo(t *testing.T) {
	shards := communities(t, 6000)
	r := short("sage")
	r.Sharing = apart(strategy.GrappaSettings{Swept: 1})
	m := newMesh(3, []int{0, 0, 1, 1, 2})
	err := m.together(t, func(ctx context.Context, node int) error {
		held, o := m.of(node, shards, isolation(Options{Threads: 1, Memory: atHome + 900<<10}))
		_, err := Run(ctx, r, held, o)
		return err
	})
	for _, want := range []string{"what the groups of this node see of other nodes' shards takes", "take --set grappa.loader=halo-sampled --set grappa.cap="} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and not %q", err, want)
		}
	}
}
