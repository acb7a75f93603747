package data

import (
	"runtime"
	"sync"
)

// making counts the datasets that this process makes shards of.
var making struct {
	mu     sync.Mutex
	stages int
	raised bool
}

// answerMeanwhile lets messages be taken while records are read, where this process has one
// processor: whoever computes would keep them waiting until he is interrupted, 10 ms later.
// With two threads the system gives the processor to the one that has a message. What it
// returns undoes it.
func answerMeanwhile() (undo func()) {
	making.mu.Lock()
	defer making.mu.Unlock()
	making.stages++
	if making.stages == 1 && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
		making.raised = true
	}
	return sync.OnceFunc(func() {
		making.mu.Lock()
		defer making.mu.Unlock()
		if making.stages--; making.stages == 0 && making.raised {
			runtime.GOMAXPROCS(1)
			making.raised = false
		}
	})
}
