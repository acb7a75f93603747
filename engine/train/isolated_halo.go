package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/hopmesh/hopmesh/engine/exchange"
)

// roomForHalo is the message in which nodes tell each other how many rows of halo their
// groups have room for: the last before that on what steps need.
var roomForHalo = exchange.Tag{Lane: exchange.LaneMessages, Step: 1<<20 - 1}

// A haloRoom is what it says.
type haloRoom struct {
	Most       uint32 // rows of each group; 0: not even one, unboundedHalo: as many as there are
	Kept       uint32 // as many as the job has had until now on this node; 0: no bound
	Needs, Has uint64 // what the run needs without any halo, and what there is
}

const unboundedHalo = math.MaxUint32

// furnish brings, where groups train in isolation, the rows of what they see, once it is
// known how many of them all nodes have memory for. What a group sees must not depend on
// which node runs it, so the node that has least decides for all.
func (t *trainer) furnish(ctx context.Context, need needs) (needs, error) {
	n := t.isolated
	if n == nil {
		return need, nil
	}
	cut, err := t.boundHalo(ctx, &need)
	if err != nil {
		return need, err
	}
	if cut {
		scene, err := n.survey(ctx, n.now.super, n.now)
		if err != nil {
			return need, fmt.Errorf("leave rows of the halo out: %w", err)
		}
		scene.sent.Add(n.now.sent.Take())
		n.seen = seen{}
		n.enter(scene)
		if need, err = t.foresee(ctx); err != nil {
			return need, err
		}
	}
	if len(n.now.far) == 0 {
		return need, nil
	}
	if err := n.furnish(ctx, n.now); err != nil {
		return need, fmt.Errorf("bring what the groups of this node see: %w", err)
	}
	if t.batches.same { // and was looked at only
		err = t.batches.ahead(ctx, min(t.place().epoch, t.recipe.Epochs), 1, func(*slot) {})
	}
	return need, err
}

// boundHalo agrees with the other nodes how many rows of halo a group may have, and says
// whether groups of this node have more now. A job keeps the bound for as long as it
// fits, whoever goes on with it. Those that promise the same bits on any nodes have none,
// nor have models in which no message can count for those that are left out.
func (t *trainer) boundHalo(ctx context.Context, need *needs) (cut bool, err error) {
	n := t.isolated
	if t.shared == nil || n.settings.Hop() != 1 || t.recipe.Sharing.Deterministic || !n.sampled {
		return false, nil
	}
	mine := haloRoom{Most: unboundedHalo}
	if t.options.Memory > 0 {
		mine = n.haloRoom(t.options.Memory, need.onHost(t)-n.forecast())
	}
	mine.Kept = uint32(min(n.most, math.MaxInt32))
	message, err := binary.Append(nil, binary.LittleEndian, &mine)
	if err != nil {
		return false, fmt.Errorf("encode how much of the halo there is room for: %w", err)
	}
	s := t.shared
	messages, err := s.exchange.Gather(ctx, roomForHalo, message, &s.start)
	if err != nil {
		return false, fmt.Errorf("hear how much of the halo the other nodes have room for: %w", err)
	}
	least, kept, tightest := uint32(unboundedHalo), uint32(unboundedHalo), 0
	for node, m := range messages {
		var of haloRoom
		if size, err := binary.Decode(m, binary.LittleEndian, &of); err != nil || size != len(m) {
			return false, fmt.Errorf("node %s tells of its room for the halo in %d bytes, which is not what that takes", s.name(node), len(m))
		}
		if of.Most == 0 {
			return false, &agreed{fmt.Errorf("on node %s, the training needs %s of memory even if its groups see nothing of the halo, and has %s: take fewer --set grappa.swept, %s, allow more with `hopmesh agent --memory`, or use more nodes", s.name(node), gib(of.Needs), gib(of.Has), strings.TrimPrefix(t.recipe.smaller(), "take "))}
		}
		if of.Most < least {
			least, tightest = of.Most, node
		}
		if of.Kept > 0 {
			kept = min(kept, of.Kept)
		}
	}
	// Checkpoints of one place may be of attempts with and without a bound.
	if n.most = 0; kept < unboundedHalo {
		n.most = int(min(kept, math.MaxInt32))
	}
	switch {
	case least < unboundedHalo && (n.most == 0 || uint64(least) < uint64(n.most)):
		n.most = int(min(least, math.MaxInt32))
		t.notes = append(t.notes, fmt.Sprintf("groups keep %d rows of their halo at most, since --memory on node %s leaves no room for more, and those count for the rest, as with --set grappa.loader=halo-sampled: allow more, or use more nodes, before the job begins", n.most, s.name(tightest)))
	case n.most > 0:
		t.notes = append(t.notes, fmt.Sprintf("groups keep %d rows of their halo at most, as since the job began", n.most))
	}
	for _, l := range t.learners {
		l.at.Halo = n.most
	}
	for _, g := range n.mine {
		cut = cut || n.most > 0 && len(n.now.contexts[g].Halo()) > n.most
	}
	return cut, nil
}

// haloRoom says how many rows of halo each group of this node has room for in a memory of
// which so much is taken by what is no scene. The halo that is there may be the largest
// or not; what shards take that pass through the groups is known of all to come.
func (n *isolated) haloRoom(memory, taken uint64) (r haloRoom) {
	room := memory - min(memory, taken)
	if n.forecast() <= room {
		return haloRoom{Most: unboundedHalo}
	}
	largest := uint64(0)
	for super := range n.schedule.Slots() {
		largest = max(largest, n.bare(n.load(super)))
	}
	bare := n.scenes()*largest + n.lacking.Bytes() + n.seen.bytes()
	r.Needs, r.Has = bare+taken, memory
	if bare < room {
		const numbers = 8 // of a row, where it is looked up and in its context
		r.Most = uint32(min((room-bare)/(n.scenes()*(n.rowBytes()+numbers)*uint64(max(1, len(n.mine)))), math.MaxInt32))
	}
	return r
}
