package train

import (
	"context"
	"encoding/hex"

	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/strategy/pipe"
)

// settle makes so many of the rows whole, on all nodes.
func (p *piped) settle(ctx context.Context, rows int, tally *strategy.Tally) error {
	if rows <= p.settled {
		return nil
	}
	if err := p.worker.Settle(ctx, p.settled, p.rows[p.settled:rows], tally); err != nil {
		return err
	}
	p.settled = rows
	return nil
}

// settleAfter settles what is wanted of a step: by what all nodes know alike. Where nothing
// is, they tell of their weights by a digest.
func (p *piped) settleAfter(ctx context.Context, t *learner, said pipe.Word, tally *strategy.Tally) (err error) {
	rows := 0
	switch {
	case said&pipe.Settle != 0:
		t.together, rows = true, len(p.rows)
	case t.at.Epoch == t.recipe.Epochs:
		rows = len(p.rows)
	case t.evaluates(t.at.Epoch):
		rows = 1
	}
	if err := p.settle(ctx, rows, tally); err != nil || p.whole() {
		return err
	}
	p.told, err = t.digest(ctx, tally)
	return err
}

// settle makes whole all that learners have which are done: some of them are before their
// time.
func (t *trainer) settle(ctx context.Context) error {
	for _, l := range t.learners {
		if l.piped == nil {
			continue
		}
		if err := l.piped.settle(ctx, len(l.piped.rows), nil); err != nil {
			return err
		}
	}
	return nil
}

// whole says whether this node has all weights: always, where it trains all.
func (p *piped) whole() bool { return p == nil || !p.worker.Parted() || p.settled > 0 }

// settledAll says whether it has all that a checkpoint holds.
func (p *piped) settledAll() bool {
	return p == nil || !p.worker.Parted() || p.settled == len(p.rows)
}

// digest is the hash of all weights, which stages have parts of: "" on nodes that leave it
// to others to tell.
func (t *learner) digest(ctx context.Context, tally *strategy.Tally) (string, error) {
	from, to := t.piped.worker.Own()
	own := t.host[from:to]
	if to > from {
		t.device.Read32(own, t.weights.View(0, 1, from, to-from))
	}
	sum, err := t.piped.worker.Digest(ctx, bytesOf(own), tally)
	return hex.EncodeToString(sum), err
}
