package lead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
)

// network is nodes that call each other without a mesh, all of which follow one plan.
type network struct {
	mu      sync.Mutex
	nodes   map[string]*node
	leader  string
	changed chan struct{}
	index   uint64
	silent  map[string]bool // they never answer
	failed  map[string]bool // gossip says so
	breaks  int             // so many calls lose their connection after they were run
	busy    int             // so many calls are not taken
}

func newNetwork(ids ...string) *network {
	w := &network{nodes: map[string]*node{}, changed: make(chan struct{}), silent: map[string]bool{}, failed: map[string]bool{}}
	for _, id := range ids {
		w.nodes[id] = &node{id: id, network: w, handlers: map[string]mesh.CallHandler{}}
	}
	return w
}

// elect makes a node the leader; "" leaves none.
func (w *network) elect(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leader = id
	w.tick()
}

func (w *network) apply() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index++
	w.tick()
	return w.index
}

func (w *network) tick() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// node is one of them: its mesh and its view of the plan.
type node struct {
	id       string
	network  *network
	handlers map[string]mesh.CallHandler
}

func (n *node) ID() string { return n.id }

func (n *node) Handle(method string, h mesh.CallHandler) { n.handlers[method] = h }

func (n *node) Member(id string) (mesh.Member, bool) {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	if n.network.failed[id] {
		return mesh.Member{ID: id, Status: mesh.Failed}, true
	}
	return mesh.Member{ID: id, Status: mesh.Alive}, n.network.nodes[id] != nil
}

func (n *node) Call(ctx context.Context, peer, method string, body []byte) ([]byte, error) {
	n.network.mu.Lock()
	silent, h := n.network.silent[peer], n.network.nodes[peer].handlers[method]
	busy := n.network.busy > 0
	if busy {
		n.network.busy--
	}
	n.network.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("call %s: %w", method, mesh.ErrOverload)
	}
	if silent {
		<-ctx.Done()
		return nil, fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
	if h == nil {
		return nil, mesh.Refuse("unknown-call", "what is %s?", method)
	}
	answer, err := h(ctx, n.id, body)
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	if n.network.breaks > 0 {
		n.network.breaks--
		return nil, fmt.Errorf("call %s: %w", method, mesh.ErrShutdown)
	}
	return answer, err
}

func (n *node) State() *plan.State {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	return &plan.State{Index: n.network.index}
}

func (n *node) Changed() <-chan struct{} {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	return n.network.changed
}

func (n *node) Leader() string {
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	return n.network.leader
}

func (n *node) IsLeader() bool              { return n.Leader() == n.id }
func (n *node) Silence() time.Duration      { return 0 }
func (w *network) orders(id string) *Orders { return New(w.nodes[id], w.nodes[id], id) }

type question struct {
	Text string
	At   time.Time
}

type answer struct{ By, From, Text string }

// ask registers an order with all nodes that says who ran it, and counts how often.
func ask(w *network, r Repetition, ran *int) map[string]*Order[question, answer] {
	all := map[string]*Order[question, answer]{}
	for id := range w.nodes {
		all[id] = Register(w.orders(id), "ask", r, func(_ context.Context, from string, q question) (answer, error) {
			*ran++
			return answer{id, from, q.Text}, nil
		})
	}
	return all
}

func TestOrdersGoToTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ran := newNetwork("a", "b"), 0
		orders := ask(w, Once, &ran)
		w.elect("a")
		for _, from := range []string{"a", "b"} {
			if got, err := orders[from].Do(t.Context(), question{Text: "x"}); err != nil || got != (answer{"a", from, "x"}) {
				t.Errorf("from %s: %+v, %v", from, got, err)
			}
		}
		w.elect("")
		go func() {
			time.Sleep(3 * time.Second)
			w.elect("b")
		}()
		if got, err := orders["a"].Do(t.Context(), question{}); err != nil || got.By != "b" {
			t.Errorf("to the next leader: %+v, %v", got, err)
		}
		w.elect("")
		begin := time.Now()
		if _, err := orders["a"].Do(t.Context(), question{}); !errors.Is(err, ErrNoLeader) || time.Since(begin) != patience {
			t.Errorf("without a leader: %v after %s", err, time.Since(begin))
		}
		if ran != 3 {
			t.Errorf("ran %d times", ran)
		}
	})
}

func TestALeaderThatDies(t *testing.T) {
	for r, want := range map[Repetition]string{Once: "", Repeatable: "c"} {
		synctest.Test(t, func(t *testing.T) {
			w, ran := newNetwork("a", "b", "c"), 0
			orders := ask(w, r, &ran)
			w.elect("b")
			w.silent["b"] = true
			go func() {
				time.Sleep(2 * time.Second)
				w.elect("c")
			}()
			got, err := orders["a"].Do(t.Context(), question{})
			if got.By != want || (err == nil) != (want != "") {
				t.Errorf("repetition %d: %+v, %v", r, got, err)
			}
		})
	}
}

// An order that may be given once waits for the next leader where gossip has given up this one.
func TestALeaderThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ran := newNetwork("a", "b", "c"), 0
		all := ask(w, Once, &ran)
		w.elect("b")
		w.silent["b"], w.failed["b"] = true, true
		go func() {
			<-time.After(3 * time.Second)
			w.elect("c")
		}()
		got, err := all["a"].Do(t.Context(), question{Text: "x"})
		if err != nil || got.By != "c" || ran != 1 {
			t.Errorf("%+v after %d runs, %v", got, ran, err)
		}
	})
}

// A connection that ends under an order is no answer: what may be run twice is asked again,
// and nothing else is.
func TestAConnectionThatEndsUnderAnOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, r := range []Repetition{Once, Repeatable} {
			w, runs := newNetwork("a", "b"), 0
			var asked *Order[None, int]
			for _, id := range []string{"b", "a"} {
				asked = Register(w.orders(id), "count", r, func(context.Context, string, None) (int, error) {
					runs++
					return runs, nil
				})
			}
			w.elect("b")
			w.breaks = 2
			n, err := asked.Do(t.Context(), None{})
			if r == Once && (!errors.Is(err, mesh.ErrShutdown) || runs != 1) || r == Repeatable && (err != nil || n != 3) {
				t.Errorf("repetition %d: %d, %v after %d runs", r, n, err, runs)
			}
		}
	})
}

// A leader that takes no call has not begun the order: it is asked again, and is what an order that
// is given up was about.
func TestALeaderWithTooMuchToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ran := newNetwork("a", "b"), 0
		all := ask(w, Once, &ran)
		w.elect("b")
		w.busy = 3
		if got, err := all["a"].Do(t.Context(), question{Text: "x"}); err != nil || got.By != "b" || ran != 1 {
			t.Errorf("%+v after %d runs, %v", got, ran, err)
		}
		w.busy = 1 << 20
		if _, err := all["a"].Do(t.Context(), question{Text: "x"}); !errors.Is(err, mesh.ErrOverload) || ran != 1 {
			t.Errorf("%v after %d runs", err, ran)
		}
	})
}

func TestOrdersThatAreRefused(t *testing.T) {
	w, ran := newNetwork("a", "b"), 0
	ask(w, Once, &ran)
	w.elect("a")
	for _, c := range []struct{ to, body, reason string }{
		{"b", `{"Text":"x"}`, NotLeader}, {"a", `{"Text":`, Invalid}, {"a", ``, Invalid}, {"a", `{"Text":7}`, Invalid}, {"a", `{"At":"now"}`, Invalid},
	} {
		if _, err := w.nodes["b"].Call(t.Context(), c.to, "order:ask", []byte(c.body)); mesh.RefusalOf(err) != c.reason {
			t.Errorf("%q to %s: %v", c.body, c.to, err)
		}
	}
	if ran != 0 {
		t.Errorf("ran %d times", ran)
	}
}

// No two orders have one name: the second would take the place of the first.
func TestOrdersHaveOneNameEach(t *testing.T) {
	w := newNetwork("a")
	o := w.orders("a")
	run := func(context.Context, string, None) (None, error) { return None{}, nil }
	Register(o, "x", Once, run)
	defer func() {
		if why, _ := recover().(string); !strings.Contains(why, "x") {
			t.Errorf("got %q", why)
		}
	}()
	Register(o, "x", Once, run)
}

func TestCommitWaitsForItsEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork("a")
		w.elect("a")
		o := w.orders("a")
		ahead := Register(o, "ahead", Once, func(context.Context, string, None) (Index, error) { return 2, nil })
		begin := time.Now()
		go func() {
			for range 2 {
				time.Sleep(time.Second)
				w.apply()
			}
		}()
		if err := Commit(t.Context(), ahead, None{}); err != nil || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(begin))
		}
		if err := o.CatchUp(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.ReadUpTo(ctx, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRefusalsHaveTheStatusOfTheirReason(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{mesh.Refuse(NotFound, "x"), http.StatusNotFound}, {fmt.Errorf("ask: %w", mesh.Refuse(Conflict, "x")), http.StatusConflict},
		{mesh.Refuse(Invalid, "x"), http.StatusBadRequest}, {mesh.Refuse("else", "x"), http.StatusServiceUnavailable}, {errors.New("x"), http.StatusServiceUnavailable},
	} {
		got, is := errors.AsType[*api.Error](APIError(c.err))
		if !is || got.Status != c.status || got.Message != "x" {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
	if err := APIError(nil); err != nil {
		t.Error(err)
	}
}

// Whatever comes from another node is an order or refused.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{`{"Text":"x","At":"2026-01-02T03:04:05Z"}`, `null`, `[]`, `{"Text":{}}`, ``, `{`} {
		f.Add([]byte(seed))
	}
	w, ran := newNetwork("a", "b"), 0
	ask(w, Once, &ran)
	w.elect("a")
	f.Fuzz(func(t *testing.T, body []byte) {
		b, err := w.nodes["b"].Call(t.Context(), "a", "order:ask", body)
		if err != nil {
			if mesh.RefusalOf(err) != Invalid {
				t.Fatalf("got %v", err)
			}
			return
		}
		var got answer
		if err := json.Unmarshal(b, &got); err != nil || got.By != "a" || got.From != "b" {
			t.Fatalf("%s: %v", b, err)
		}
	})
}
