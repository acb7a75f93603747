package data

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
)

// A hearing is a mesh that learns of a node's address after some time.
type hearing struct {
	Mesh
	after time.Time
	fails error // then
}

func (h *hearing) Fetch(context.Context, string, mesh.Question) ([]byte, error) {
	if time.Now().Before(h.after) {
		return nil, fmt.Errorf("dial it: %w", mesh.ErrNoAddress)
	}
	return []byte("answer"), h.fails
}

func TestReachWaitsForAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("another trouble")
		for _, w := range []struct {
			after time.Duration
			fails error
			want  error
			least time.Duration
		}{
			{0, nil, nil, 0}, {3 * time.Second, nil, nil, 3 * time.Second}, {0, other, other, 0},
			{time.Hour, nil, mesh.ErrNoAddress, addressPatience},
		} {
			begin := time.Now()
			m := &hearing{after: begin.Add(w.after), fails: w.fails}
			b, err := reach(t.Context(), m, "n2", mesh.Question{})
			if !errors.Is(err, w.want) || err == nil && string(b) != "answer" {
				t.Errorf("%+v: %q, %v", w, b, err)
			}
			if took := time.Since(begin); took < w.least || took > w.least+2*time.Second {
				t.Errorf("%+v: it took %v", w, took)
			}
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, other)
		defer cancel()
		m := &hearing{after: time.Now().Add(time.Hour)}
		if _, err := reach(ctx, m, "n2", mesh.Question{}); !errors.Is(err, other) {
			t.Errorf("when the import is over: %v", err)
		}
	})
}
