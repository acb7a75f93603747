package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/consensus/plan"
	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/damage"
	"github.com/hopmesh/hopmesh/node/lead"
)

// Each node computes the plan for itself, from the same commands. The leader compares what they
// come to: it asks all for the digest of the plan right after one command. A node whose plan
// differs from that of most voters has a wrong one, whatever the cause.

const (
	callDigest  = "plan-digest"
	callDiffers = "plan-differs"
)

// digestTimeout bounds how long comparing may delay the leader's rounds.
const digestTimeout = 500 * time.Millisecond

// digestOf asks for the digest right after the command at an index, or answers it. Only nodes
// whose plans have the same fields, and that know the same commands, can be compared: others keep
// less of a plan, or more.
type digestOf struct {
	Index  uint64    `json:"index"`
	Digest string    `json:"digest,omitempty"` // "": not known
	Shape  string    `json:"shape,omitempty"`
	Knows  plan.Kind `json:"knows,omitempty"`
}

// serveDigests registers the handlers of the calls.
func (c *contacts) serveDigests() {
	c.mesh.Handle(callDigest, func(_ context.Context, _ string, b []byte) ([]byte, error) {
		var q digestOf
		if err := json.Unmarshal(b, &q); err != nil {
			return nil, mesh.Refuse(lead.Invalid, "the question for a digest can't be read: %v", err)
		}
		return json.Marshal(c.digest(q.Index))
	})
	c.mesh.Handle(callDiffers, func(_ context.Context, peer string, b []byte) ([]byte, error) {
		if peer != c.plan.Leader() {
			return nil, lead.ErrNotFromLeader
		}
		var right digestOf
		if err := json.Unmarshal(b, &right); err != nil {
			return nil, mesh.Refuse(lead.Invalid, "a digest can't be read: %v", err)
		}
		if own, known := c.plan.DigestAt(right.Index); known && right.Digest != "" && own != right.Digest {
			c.plan.Condemn(fmt.Sprintf("after command %d it differs from that of most voters", right.Index))
		}
		return nil, nil
	})
}

func (c *contacts) digest(index uint64) digestOf {
	d, _ := c.plan.DigestAt(index)
	return digestOf{Index: index, Digest: d, Shape: plan.Shape(), Knows: Knows(c.about.Numbers)}
}

const (
	// compareAgain is how often plans are compared that do not change.
	compareAgain = time.Minute
	// compareShare bounds what comparing costs: its time is at most this part of all.
	compareShare = 100
)

// comparer is the leader's part in comparing plans. Only the leader's rounds use it.
type comparer struct {
	member *Member

	index uint64    // to be compared in this round: the others have come to it since the last
	done  uint64    // compared last
	next  time.Time // not before
	last  time.Time
}

// Compare compares the plans of those who decide. What it finds is acted on at once.
func (c *comparer) Compare(ctx context.Context, s *plan.State) error {
	index, now := c.index, time.Now()
	c.index = s.Index
	if index == 0 || now.Before(c.next) || index == c.done && now.Sub(c.last) < compareAgain {
		return nil
	}
	own := c.member.contacts.digest(index)
	c.next = now.Add(compareShare * time.Since(now))
	if own.Digest == "" {
		return nil
	}
	answers, all := c.ask(ctx, own)
	if all {
		c.done, c.last = index, now
	}
	return c.judge(ctx, own, answers, all)
}

// ask returns the digests of the nodes that could be compared, by id, this one's included. It
// reports whether all others are down, or of another version.
func (c *comparer) ask(ctx context.Context, own digestOf) (digests map[string]string, all bool) {
	m := c.member
	body, err := json.Marshal(digestOf{Index: own.Index})
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	digests, all = map[string]string{m.mesh.ID(): own.Digest}, true
	for _, server := range m.plan.Servers() {
		if server.ID == m.mesh.ID() || !m.Answers(server.ID) {
			continue
		}
		wg.Go(func() {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			defer m.gossip.until(server.ID, stop)() // no round waits for a node that has failed
			b, err := m.mesh.Call(ctx, server.ID, callDigest, body)
			var a digestOf
			if err == nil {
				err = json.Unmarshal(b, &a)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case mesh.RefusalOf(err) != "": // an earlier version, or one that comes back
			case err != nil, a.Index != own.Index:
				all = false
			case a.Shape != own.Shape, a.Knows != own.Knows:
			case a.Digest == "": // it is behind
				all = false
			default:
				digests[server.ID] = a.Digest
			}
		})
	}
	wg.Wait()
	return digests, all
}

// differKey is the entry of the board about plans of which nobody knows which is right. Only a
// leader has it: the next one compares anew.
const differKey = "plans differ"

// judge acts on digests: most voters are right. all means that no node is left to be asked.
func (c *comparer) judge(ctx context.Context, own digestOf, digests map[string]string, all bool) error {
	m := c.member
	voters, votes := 0, map[string]int{}
	for _, server := range m.plan.Servers() {
		if server.Voter {
			voters++
			if d := digests[server.ID]; d != "" {
				votes[d]++
			}
		}
	}
	right := ""
	for d, n := range votes {
		if n > voters/2 {
			right = d
		}
	}
	differing := 0
	for _, d := range digests {
		if d != own.Digest {
			differing++
		}
	}
	if differing == 0 && all || right != "" {
		m.cfg.Damage.Clear(damage.Log, differKey)
	}
	switch {
	case differing == 0:
		return nil
	case right == "":
		m.cfg.Damage.Found(damage.Log, differKey, fmt.Sprintf("the plans of %d nodes differ from this leader's after command %d, and no digest is that of most voters: start those that are down, so that it shows who is right", differing, own.Index))
		return nil
	case right != own.Digest:
		if err := m.plan.HandOver(ctx); err != nil {
			m.cfg.Log.Warn("this leader's plan is wrong, and it could not hand over", "err", err)
		}
		m.plan.Condemn(fmt.Sprintf("after command %d it differs from that of most voters", own.Index))
		return nil
	}
	body, err := json.Marshal(digestOf{Index: own.Index, Digest: right})
	if err != nil {
		return err
	}
	var errs []error
	for id, d := range digests {
		if d == right {
			continue
		}
		m.cfg.Log.Error("the plan of a node differs from that of most voters; it is to give it up", "id", id, "index", own.Index)
		if err := c.tell(ctx, id, body); err != nil {
			c.done = 0 // the next round tries again
			errs = append(errs, fmt.Errorf("tell node %s that its plan is wrong: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// tell tells a node that its plan is wrong. It stops waiting once gossip sees that the node has
// failed.
func (c *comparer) tell(ctx context.Context, id string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	defer c.member.gossip.until(id, cancel)()
	_, err := c.member.mesh.Call(ctx, id, callDiffers, body)
	return err
}
