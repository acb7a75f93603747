package gather

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/peer/loopback"
)

func fiveNodes(t *testing.T, k kind) (*mesh, [][]uint32) {
	m := meshOf(t, graphOf(k, 10, 10, 10, 10, 10), 5, []int{0, 1, 2, 3, 4}, "none", "")
	rng := rand.New(rand.NewPCG(5, 6))
	return m, [][]uint32{m.some(rng, 50), m.some(rng, 50)}
}

// TestOwnersAreAskedAtOnce: four that take 50 ms each take 50 ms together, sets apart
// as often as there are sets.
func TestOwnersAreAskedAtOnce(t *testing.T) {
	for _, k := range kinds {
		synctest.Test(t, func(t *testing.T) {
			m, sets := fiveNodes(t, k)
			m.net.Delay = 50 * time.Millisecond
			for o, takes := range map[Options]time.Duration{
				{}: 50 * time.Millisecond, {Repeated: true}: 50 * time.Millisecond, {Apart: true}: 100 * time.Millisecond,
			} {
				var r Rows
				start := time.Now()
				m.gather(0, &r, sets, o, nil)
				if took := time.Since(start); took != takes {
					t.Errorf("%+v: %v", o, took)
				}
				m.checkRows(t, 0, &r, sets)
			}
		})
	}
}

// TestOneFailureEndsAll: the others are not waited for, and the next time all is well.
func TestOneFailureEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sets := fiveNodes(t, kinds[0])
		fails := true
		m.net.Trouble = func(ctx context.Context, _, to int, _ peer.Query) error {
			switch {
			case !fails:
				return nil
			case to == 2:
				return errors.New("it burns")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		var r Rows
		for range 3 {
			err := m.sources[0].Gather(t.Context(), &r, sets, 3, 4, Options{}, nil)
			if err == nil || err.Error() != "gather rows of features for epoch 3, step 5: ask node n2: it burns" {
				t.Fatal(err)
			}
		}
		fails = false
		m.gather(0, &r, sets, Options{}, nil)
		m.checkRows(t, 0, &r, sets)
	})
}

func TestTheContextEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sets := fiveNodes(t, kinds[0])
		m.net.Trouble = func(ctx context.Context, _, _ int, _ peer.Query) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		for _, sets := range [][][]uint32{sets, {{11}}} { // many are asked, one is
			why := errors.New("the plan changed")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
			var r Rows
			if err := m.sources[0].Gather(ctx, &r, sets, 1, 0, Options{}, nil); !errors.Is(err, why) {
				t.Error(err)
			}
			cancel()
		}
	})
}

// TestQuestionsWait until the one who is asked is ready, or they end.
func TestQuestionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meshOf(t, graphOf(kinds[0], 10, 10), 2, []int{0, 1}, "none", "")
		net := loopback.New(2)
		asks, late := Register(net.Node(0)), Register(net.Node(1))
		if err := asks.Ready(m.stores[0], m.work(0), m.layout, ""); err != nil {
			t.Fatal(err)
		}
		net.Node(1).Open()
		sets := [][]uint32{{12, 3, 15}}
		var r Rows
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if err := asks.Gather(ctx, &r, sets, 1, 0, Options{}, nil); !errors.Is(err, why) {
			t.Error(err)
		}
		time.AfterFunc(time.Minute, func() {
			if err := late.Ready(m.stores[1], m.work(1), m.layout, ""); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		if err := asks.Gather(t.Context(), &r, sets, 1, 0, Options{}, nil); err != nil || time.Since(start) != time.Minute {
			t.Error(err, time.Since(start))
		}
		m.checkRows(t, 0, &r, sets)
	})
}

// TestManyGather: many goroutines use one source, at all nodes at once.
func TestManyGather(t *testing.T) {
	for _, k := range kinds {
		m := meshOf(t, graphOf(k, 40, 40, 40), 3, []int{0, 1, 2}, "row", "")
		var wait sync.WaitGroup
		for node := range 3 {
			for seed := range uint64(3) {
				wait.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(node)))
					var r Rows
					for i := range 10 {
						sets := [][]uint32{m.some(rng, 60), m.some(rng, 100)}
						if err := m.sources[node].Gather(t.Context(), &r, sets, 1, 0, options[i%len(options)], nil); err != nil {
							t.Error(err)
							return
						}
						m.checkRows(t, node, &r, sets)
					}
				})
			}
		}
		wait.Wait()
	}
}

// TestSteps take no memory beside that of asking.
func TestSteps(t *testing.T) {
	for _, k := range kinds {
		m := meshOf(t, graphOf(k, 300, 300, 300), 3, []int{0, 1, 2}, "row", "")
		rng := rand.New(rand.NewPCG(3, 4))
		sets := [][]uint32{m.some(rng, 900), m.some(rng, 400)}
		if _, err := m.sources[0].Cache(t.Context(), 50, m.shards, nil); err != nil {
			t.Fatal(err)
		}
		for _, o := range options {
			for _, sets := range [][][]uint32{sets, sets[:1]} {
				m.sources[0].peers = m.net.Node(0)
				var r Rows
				m.gather(0, &r, sets, o, nil)
				memory := &remembers{answers: map[string][]byte{}, peers: m.net.Node(0)}
				m.sources[0].peers = memory
				m.gather(0, &r, sets, o, nil)
				ctx := t.Context()
				n := testing.AllocsPerRun(20, func() {
					if err := m.sources[0].Gather(ctx, &r, sets, 1, 0, o, nil); err != nil {
						t.Fatal(err)
					}
				})
				if n != 0 {
					t.Errorf("%+v, %+v, %d sets: %v allocations", k, o, len(sets), n)
				}
				m.checkRows(t, 0, &r, sets)
			}
		}
	}
}

// remembers are peers that give the answers of other peers, again and again, without
// taking memory.
type remembers struct {
	peer.Peers
	mu      sync.Mutex
	peers   peer.Peers
	answers map[string][]byte
}

func (p *remembers) Ask(ctx context.Context, node int, q peer.Query, buf []byte) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.answers[string(q.Body)]; ok {
		if cap(buf) < len(known) {
			return nil, errors.New("the answer was given memory that is too small")
		}
		return append(buf[:0], known...), nil
	}
	got, err := p.peers.Ask(ctx, node, q, nil)
	if err != nil {
		return nil, err
	}
	p.answers[strings.Clone(string(q.Body))] = append([]byte(nil), got...)
	return got, nil
}
