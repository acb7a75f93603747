package soak

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"testing"

	"github.com/hopmesh/hopmesh/engine/strategies"
)

// Each strategy has its turn, and each round a graph of another content.
func TestProtocol(t *testing.T) {
	seen := map[string]bool{}
	for round := range strategies.Computed() {
		seen[strategy(round)] = true
		if j := job(round); j.Strategy != strategy(round) || *j.Epochs != epochs {
			t.Errorf("round %d trains %+v", round, j)
		}
	}
	if len(seen) != len(strategies.Computed()) || seen["auto"] {
		t.Errorf("the jobs are of %v", seen)
	}
	if a, b := goes(1), goes(2); a.Name == b.Name || a.Seed == b.Seed {
		t.Errorf("%+v and %+v", a, b)
	}
	folder, err := files(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"edges.csv", "features.csv", "labels.csv"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The node that grew most counts, from the second quarter to the last.
func TestFigures(t *testing.T) {
	r := &Report{}
	for i := range 16 {
		one := Reading{Memory: 100, Goroutines: 50, Descriptors: 20, Disk: 5}
		round := Round{After: float64(60 * (i + 1)), Nodes: []Reading{one, one, one}}
		switch {
		case i < 4:
			round.Nodes[1].Memory = 10 // does not count
		case i >= 12:
			round.Nodes[1].Memory, round.Nodes[0].Memory, round.Nodes[2].Goroutines = 117, 90, 58
		}
		r.Rounds = append(r.Rounds, round)
	}
	want := []struct {
		value float64
		holds bool
	}{{16, false}, {0, true}, {17, false}, {8, true}, {0, true}, {0, true}}
	got := figures(r)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i].Value != w.value || got[i].Bar != "" && got[i].Holds != w.holds {
			t.Errorf("%+v", got[i])
		}
	}
	r.Failed = []string{"one"}
	if f := figures(r)[1]; f.Holds {
		t.Errorf("%+v", f)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), make([]byte, 3*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "hopmesh.sock"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	defer func() {
		_ = server.Shutdown(context.Background())
		<-done
	}()
	r, err := read(t.Context(), os.Getpid(), dir)
	if err != nil || r.Memory < 1 || r.Goroutines < 3 || r.Descriptors < 4 || r.Disk < 3 || r.Disk > 3.5 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, wrong := range []string{"", "goroutine profile: total x", "3"} {
		if _, err := total(wrong); err == nil {
			t.Errorf("%q has a total", wrong)
		}
	}
}
