package replica

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

// counting counts questions, and how many one node is asked at once at most.
type counting struct {
	mu        sync.Mutex
	asked     int
	now, most [8]int
}

func (c *counting) Ask(ctx context.Context, p peer.Peers, node int, q peer.Query, buf []byte) ([]byte, error) {
	c.mu.Lock()
	c.asked++
	c.now[node]++
	c.most[node] = max(c.most[node], c.now[node])
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now[node]--
		c.mu.Unlock()
	}()
	return p.Ask(ctx, node, q, buf)
}

// counted are peers whose questions are counted.
type counted struct {
	*loopback.Node
	c *counting
}

func (p counted) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	return p.c.Ask(ctx, p.Node, node, q, buf)
}

func TestWhatIsCachedIsNotAskedFor(t *testing.T) {
	net, works, here := mesh(4, graphs(false), owners)
	c := &counting{}
	peers := counted{net.Node(0), c}
	cache, tally := &Cache{}, &peer.Tally{}
	bring := func(dataset, topology string, want int) *Replica {
		t.Helper()
		c.asked = 0
		r, err := Bring(t.Context(), peers, works[0], here[0], Options{Dataset: dataset, Topology: topology, Cache: cache, Tally: tally})
		if err != nil {
			t.Fatal(err)
		}
		if c.asked != want {
			t.Errorf("%d questions, and not %d", c.asked, want)
		}
		return r
	}
	first := bring("x", auto, 2+5)
	if got := tally.Read(); got.Requests[peer.Shard] != 7 || got.Bytes[peer.Shard] < first.Bytes {
		t.Errorf("counted are %v", got)
	}
	again := bring("x", auto, 0)
	if first.Shards[1] != again.Shards[1] || again.Bytes != first.Bytes {
		t.Error("the cached shard is another")
	}
	bring("x", sharded, 5)
	bring("x", sharded, 0)
	bring("x", replicated, 5)
	bring("y", replicated, 7)
	bring("x", replicated, 7)

	// A run that was cut off leaves what it brought: sizes at the least.
	cutOff := errors.New("cut off")
	net.Trouble = func(_ context.Context, _, _ int, q peer.Query) error {
		if q.Part == 6 {
			return cutOff
		}
		return nil
	}
	cache = &Cache{}
	if _, err := Bring(t.Context(), peers, works[0], here[0], Options{Dataset: "x", Cache: cache}); !errors.Is(err, cutOff) || !strings.Contains(err.Error(), "shard 6 of node c") {
		t.Error(err)
	}
	net.Trouble = nil
	bring("x", replicated, 5-len(cache.of))
	// What is held meanwhile is not kept twice.
	held := slices.Clone(here[0])
	held[5] = here[2][5]
	here[0] = held
	bring("x", replicated, 0)
	if len(cache.of) != 4 || cache.of[5] != nil {
		t.Errorf("kept are %v", cache.of)
	}
}

func TestFewShardsAtATime(t *testing.T) {
	counts, by := make([]int, 40), make([]int, 40)
	for i := range counts {
		counts[i], by[i] = 3, 1+i%2
	}
	net, works, here := mesh(3, shards(false, counts...), by)
	c := &counting{}
	var gate sync.WaitGroup // until so many are asked at once, of both owners
	gate.Add(2 * atATime)
	var once sync.Map
	net.Trouble = func(_ context.Context, _, to int, q peer.Query) error {
		if len(q.Body) == 1 {
			return nil
		}
		if _, late := once.LoadOrStore(q.Part, true); !late && q.Part < 2*atATime {
			gate.Done()
			gate.Wait()
		}
		return nil
	}
	if _, err := Bring(t.Context(), counted{net.Node(0), c}, works[0], here[0], Options{}); err != nil {
		t.Fatal(err)
	}
	if c.most[1] != atATime || c.most[2] != atATime {
		t.Errorf("%v shards are asked for at once", c.most)
	}
}
