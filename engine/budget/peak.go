package budget

import (
	"sync"
	"time"
)

// Own returns how much memory of its own this process holds: anonymous and shared memory, not
// files that it maps.
func Own() uint64 {
	return Field(proc.status, "RssAnon:", 0) + Field(proc.status, "RssShmem:", 0)
}

// Peak measures how much memory a process comes to hold while something runs.
type Peak struct {
	held  func() uint64
	first uint64
	stop  chan struct{}
	ended sync.WaitGroup

	mu   sync.Mutex
	most uint64
}

// WatchPeak measures once in a while until Stop is called.
func WatchPeak(every time.Duration) *Peak { return watchPeak(every, Own) }

func watchPeak(every time.Duration, held func() uint64) *Peak {
	first := held()
	p := &Peak{held: held, first: first, most: first, stop: make(chan struct{})}
	p.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.measure()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *Peak) measure() {
	now := p.held()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = max(p.most, now)
}

// Taken returns how much more the process has held than at the beginning.
func (p *Peak) Taken() uint64 {
	p.measure()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most - p.first
}

// Stop ends the measurement and returns what Taken does.
func (p *Peak) Stop() uint64 {
	close(p.stop)
	p.ended.Wait()
	return p.Taken()
}
