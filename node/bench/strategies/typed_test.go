package strategies

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// TestTypedOnASmallMesh trains an R-GCN on a small graph of ogbn-mag's shape by four nodes: bytes
// are those of the rows that travel, and what is learnt is ten times as good as a guess.
func TestTypedOnASmallMesh(t *testing.T) {
	t.Parallel() // it mostly waits
	const nodes = 4
	f := fleet.New(filepath.Join(t.TempDir(), "f"), "test")
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range nodes {
		if _, err := f.Launch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Until(t.Context(), "all nodes are in", f.AllReady); err != nil {
		t.Fatal(err)
	}
	b := newSuite(t, bench.Config{Nodes: nodes})
	figures, err := trainTyped(t.Context(), b, f.Nodes[0].API(), 0.01, load{"rgcn", 64, []int{5, 5}, 512}, 8, 0.04)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	sent := b.report.Sent
	if len(figures) != 2 || len(sent) != 2 {
		t.Fatalf("%+v of %+v", figures, sent)
	}
	for i, s := range sent {
		if s.Strategy != []string{"centric", "leap"}[i] || s.Steps != 13 || s.Width != 131 || s.Rows.Remote == 0 {
			t.Errorf("%+v", s)
		}
		want := s.Rows.Remote*(4*131+4) + s.Requests.Feature*(peer.QueryFraming+peer.AnswerFraming)
		if s.Bytes.Feature != want {
			t.Errorf("%s: %d bytes of features, want %d", s.Strategy, s.Bytes.Feature, want)
		}
	}
	if !strings.Contains(figures[1].Name, "after 8 epochs of leap") {
		t.Errorf("%+v", figures[1])
	}
}
