package forecast

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/budget"
	"github.com/hopmesh/hopmesh/node/shape"
)

// held returns the memory of its own that a process holds.
func held(pid int) uint64 {
	status := fmt.Sprintf("/proc/%d/status", pid)
	return budget.Field(status, "RssAnon:", 0) + budget.Field(status, "RssShmem:", 0)
}

// usedBy returns the seconds of processor time that all nodes have taken so far.
func usedBy(crew *shape.Crew) (seconds float64) {
	const ticks = 100 // a second, on every Linux
	for _, node := range crew.Nodes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", node.PID()))
		if err != nil {
			continue // it has ended, and the job with it
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, at := range []int{11, 12} { // of the user and the system
			if at < len(fields) {
				n, _ := strconv.ParseFloat(fields[at], 64)
				seconds += n / ticks
			}
		}
	}
	return seconds
}

// settle waits until no process holds much more than it did idle, but not for long: what
// a cell before it has left counts for the next, where it is not given back.
func settle(ctx context.Context, crew *shape.Crew, idle []uint64) error {
	const (
		near  = 8 << 20
		most  = 10 * time.Second
		every = 200 * time.Millisecond
	)
	for begin := time.Now(); time.Since(begin) < most; {
		above := false
		for i, node := range crew.Nodes {
			above = above || held(node.PID()) > idle[i]+near
		}
		if !above {
			return nil
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// A watcher measures what processes come to hold.
type watcher struct {
	stop  chan struct{}
	once  sync.Once
	ended sync.WaitGroup
	most  uint64
}

func watch(crew *shape.Crew) *watcher {
	w := &watcher{stop: make(chan struct{})}
	w.ended.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for _, node := range crew.Nodes {
					w.most = max(w.most, held(node.PID()))
				}
			case <-w.stop:
				return
			}
		}
	})
	return w
}

// end stops measuring and returns the most that a node held.
func (w *watcher) end() uint64 {
	w.once.Do(func() { close(w.stop) })
	w.ended.Wait()
	return w.most
}
