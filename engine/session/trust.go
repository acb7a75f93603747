package session

import (
	"context"
	"errors"
	"fmt"
)

// Damaged ends a run in which a node has read something else of its shards than they should
// hold. What the run has computed since the last epoch's end or checkpoint is not kept.
type Damaged struct{ Err error }

func (e *Damaged) Error() string { return e.Err.Error() }

func (e *Damaged) Unwrap() error { return e.Err }

// Trust is what a run knows of the shards that its nodes read. Training begins before they
// are verified; no epoch ends and no checkpoint is written until they are.
type Trust struct {
	session *Session
	known   bool // all nodes have verified what they read, in this run
	stepped bool // there are steps since the nodes last agreed
}

// NewTrust returns what a run knows when it begins.
func NewTrust(s *Session) Trust { return Trust{session: s, known: !s.Verifies()} }

// Unsound returns the error of a run whose shards are not, or may not be, what they were.
func Unsound(err error) error {
	if errors.Is(err, ErrUnverified) {
		return err // the shards could not be read now, and may well be whole
	}
	return &Damaged{err}
}

// Verify waits until this node knows that its shards are whole. The others learn of damage
// before this one ends, so that none keeps what it has computed with the numbers from here.
func (i *Trust) Verify(ctx context.Context) error {
	err := i.session.Verify(ctx, true)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx) // nothing of an epoch that may not be verified leaves this node
	case err == nil:
		return nil
	case !errors.Is(err, ErrUnverified):
		i.session.Doubt(ctx)
	}
	return Unsound(err)
}

// Agreed notes that all nodes have verified what they read up to now: none sends its part of
// an epoch's end before that.
func (i *Trust) Agreed() { i.known, i.stepped = true, false }

// Stepped notes that a step begins.
func (i *Trust) Stepped() { i.stepped = true }

// Keeps reports whether a checkpoint of where the run stands may be kept.
func (i *Trust) Keeps() bool {
	if !i.stepped {
		return true
	}
	// A node that is alone need not hear of others.
	return (i.known || i.session.Alone()) && i.session.Doubted() == "" && i.session.Verify(context.Background(), false) == nil
}

// Confirmed reports whether all nodes know that what they have read is whole: a checkpoint in
// the middle of an epoch depends on the shards of all.
func (i *Trust) Confirmed(ctx context.Context) bool {
	if !i.session.Verifies() {
		return true
	}
	if i.session.Verify(ctx, false) != nil || i.session.Intact(ctx, false) != "" {
		return false
	}
	i.known = true
	return true
}

// Blame returns the error of a run that has diverged: a Damaged if numbers of a damaged shard may be the
// reason.
func (i *Trust) Blame(ctx context.Context, err error) error {
	if !i.session.Verifies() {
		return err
	}
	if damage := i.Verify(ctx); damage != nil {
		if ctx.Err() != nil || errors.Is(damage, ErrUnverified) {
			return err
		}
		return damage
	}
	if not := i.session.Intact(ctx, true); not != "" && ctx.Err() == nil {
		return &Damaged{fmt.Errorf("node %s has read a damaged shard", not)}
	}
	return err
}

// Trusted reports whether what nodes have brought from each other may serve another run.
func (i *Trust) Trusted() bool { return i.known && i.session.Doubted() == "" }
