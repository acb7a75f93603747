package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hopmesh/hopmesh/consensus/plan"
)

// work is the goroutines that Open started, and the context that ends them.
type work struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// Open starts Raft from the state in the stores. It returns at once; Changed fires when
// a leader is known.
func Open(cfg Config) (*Consensus, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	log := newLogger(cfg.Log)
	c := &Consensus{
		cfg: cfg, changes: newSignal(), calls: newCalls(),
		hint: make(chan struct{}, 1), spread: make(chan struct{}, 1), failure: failure{ed: make(chan struct{})}, ending: ending{began: make(chan struct{})},
	}
	c.fsm = newFSM(c.changes.fire, c.fail)
	conf := raftConfig(cfg.ID, log)
	c.net = newTransport(newStreams(cfg.Layer), log)
	if err := c.start(conf); err != nil {
		return nil, errors.Join(err, c.net.Close(), cfg.Stores.Close())
	}
	c.led.Store(time.Now().UnixNano())
	c.work.ctx, c.work.cancel = context.WithCancelCause(context.Background())
	c.work.wg.Go(c.watchLeadership)
	s := scrubber{stores: cfg.Stores, repaired: cfg.Repaired, log: cfg.Log}
	c.work.wg.Go(func() {
		if err := s.run(c.work.ctx, c.Failed()); err != nil {
			c.fail(damaged(err))
		}
	})
	c.work.wg.Go(func() {
		select {
		case <-c.failure.ed:
			// After any other failure it may still vote.
			if errors.Is(c.failure.err, ErrDamaged) {
				c.stop()
			}
		case <-c.work.ctx.Done():
		}
	})
	return c, nil
}

// stop makes Raft stop, and returns what tells that it has.
func (c *Consensus) stop() raft.Future {
	c.ending.once.Do(func() {
		close(c.ending.began)
		c.ending.stopped = c.raft.Shutdown()
	})
	return c.ending.stopped
}

// start starts Raft in a goroutine of its own, which the guards may end.
func (c *Consensus) start(conf *raft.Config) error {
	if !c.cfg.Stores.verified {
		if _, err := verify(c.cfg.Stores.Log, c.cfg.Stores.Snapshots, 0); err != nil && !errors.Is(err, plan.ErrUnknownCommand) {
			return damaged(err)
		}
	}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				c.fail(damaged(fmt.Errorf("raft can't start from it: %v", p)))
			}
		}()
		err = c.startRaft(conf)
	}()
	<-done
	if c.Err() != nil {
		return c.Err() // Raft's own error is less precise
	}
	return err
}

func (c *Consensus) startRaft(conf *raft.Config) error {
	s := c.cfg.Stores
	g := guard{c.fail, c.cfg.Log, new(atomic.Bool), &c.lack, c.ending.began}
	s.Log, s.Stable, s.Snapshots = guardedLog{newSuffixLog(s.Log), g}, &guardedStable{StableStore: s.Stable, guard: g}, guardedSnapshots{s.Snapshots, g}
	if c.cfg.Genesis != nil {
		found := raft.Configuration{Servers: []raft.Server{voter(c.cfg.ID)}}
		err := raft.BootstrapCluster(conf, s.Log, s.Stable, s.Snapshots, c.net, found)
		if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
			return fmt.Errorf("found the plan's log: %w", err)
		}
	}
	if err := raft.ValidateConfig(conf); err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	r, err := raft.NewRaft(conf, c.fsm, s.Log, s.Stable, s.Snapshots, c.net)
	if err != nil {
		// With a right configuration, what keeps Raft from starting is what it reads.
		return damaged(fmt.Errorf("raft can't start from it: %w", err))
	}
	g.started.Store(true)
	c.raft = r
	c.net.raft.Store(r)
	// The filter runs in Raft's own goroutine and forwards nothing, so no channel can
	// fill up.
	r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if _, ok := o.Data.(raft.LeaderObservation); ok {
			c.changes.fire()
		}
		return false
	}))
	return nil
}

// drainTimeout bounds how long Close waits for requests under way. A leader without a
// majority drops them within half a second.
const drainTimeout = 2 * time.Second

// Close stops Raft and its transport with every stream, then closes the stores. It
// returns by the time ctx ends, whatever Raft does. It does not transfer leadership;
// see HandOver.
func (c *Consensus) Close(ctx context.Context) error {
	c.calls.close()
	c.work.cancel(ErrClosed)
	drain, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	// Requests still under way then end with Raft, or are abandoned with it.
	_ = within(drain, c.work.wg.Wait)
	_ = within(drain, c.calls.wg.Wait)

	stopping := c.stop()
	err := c.net.Close() // first, so that Raft does not wait for peers
	c.net.CloseStreams()
	stopped := within(ctx, func() {
		_ = stopping.Error()
		c.work.wg.Wait()
		c.calls.wg.Wait()
	})
	if stopped != nil {
		stopped = fmt.Errorf("raft did not stop in time: %w", stopped)
	}
	c.changes.fire()
	return errors.Join(stopped, err, c.cfg.Stores.Close())
}

// within runs wait, and returns an error if ctx ends first.
func within(ctx context.Context, wait func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
