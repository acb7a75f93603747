package member

import (
	"bytes"
	"testing"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh/identity"
)

// The key counts that more than half of all known nodes use, with the same serial.
func TestPoll(t *testing.T) {
	right, wrong := identity.NewGossipKey(3), identity.NewGossipKey(4)
	forged := right
	forged.Serial = 1 << 60
	for name, c := range map[string]struct {
		of   int
		used []identity.GossipKey
		want []byte
	}{
		"nobody answers":           {3, nil, nil},
		"one of one":               {1, []identity.GossipKey{right}, right.Key},
		"one of three":             {3, []identity.GossipKey{wrong}, nil},
		"two of three":             {3, []identity.GossipKey{wrong, right, right}, right.Key},
		"two against two":          {4, []identity.GossipKey{wrong, right, right, wrong}, nil},
		"as many as do not answer": {4, []identity.GossipKey{right, right}, nil},
		"another serial":           {3, []identity.GossipKey{forged, right, right}, right.Key},
		"no two agree":             {3, []identity.GossipKey{forged, right, wrong}, nil},
	} {
		p := poll{of: c.of}
		p.add(nil)
		for _, k := range c.used {
			p.add([]identity.GossipKey{k, identity.NewGossipKey(1)})
		}
		got, is := p.most()
		if is != (c.want != nil) || !bytes.Equal(got.Key, c.want) || is && got.Serial != 3 {
			t.Errorf("%s: %v, %v", name, got, is)
		}
	}
}

// The plan decides which keys stay and which is in use, and what the serial of that one is.
func TestOrdered(t *testing.T) {
	used, former, next, old := identity.NewGossipKey(3), identity.NewGossipKey(2), identity.NewGossipKey(4), identity.NewGossipKey(1)
	damaged := used
	damaged.Serial = 7
	want := plan.Key{Serial: 3, Digest: identity.KeyDigest(used.Key), Previous: identity.KeyDigest(former.Key)}
	for name, c := range map[string]struct {
		held, ring []identity.GossipKey
		same       bool
	}{
		"as they are":      {[]identity.GossipKey{used, former}, []identity.GossipKey{used, former}, true},
		"another order":    {[]identity.GossipKey{old, former, next, used}, []identity.GossipKey{used, former, next}, false},
		"a damaged serial": {[]identity.GossipKey{damaged}, []identity.GossipKey{used}, false},
		"the one is gone":  {[]identity.GossipKey{former, next}, nil, false},
	} {
		ring := ordered(c.held, want)
		if same := sameKeys(c.held, ring); !sameKeys(ring, c.ring) || same != c.same {
			t.Errorf("%s: %v, unchanged: %t", name, ring, same)
		}
	}
}
