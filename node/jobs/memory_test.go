package jobs

import (
	"runtime"
	"slices"
	"testing"

	"github.com/hopmesh/hopmesh/engine/train"
)

func TestMemoryOfJobs(t *testing.T) {
	var r Runner
	if _, known := r.Memory("j1"); known {
		t.Error("a job that has not run has taken memory")
	}
	m := r.memories.job("j1")
	end := m.watch()
	m.announce(&train.Forecast{Arenas: 7, FellBack: []string{"less"}})
	big := make([]byte, 64<<20)
	for i := 0; i < len(big); i += 4096 {
		big[i] = 1
	}
	now, known := r.Memory("j1")
	if !known || now.Forecast != 7 || now.Taken < 32<<20 || !slices.Equal(now.FellBack, []string{"less"}) {
		t.Errorf("%+v while it runs", now)
	}
	end()
	runtime.KeepAlive(big)
	r.memories.job("j1").watch()() // once more, with less
	if after, _ := r.Memory("j1"); after.Taken < now.Taken || after.Forecast != 7 {
		t.Errorf("%+v after it has run", after)
	}
	r.memories.forget("j1")
	if _, known := r.Memory("j1"); known {
		t.Error("a job that is gone is still known")
	}
}
