package train

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/strategy"
)

// A model that tours within a step is computed with, and passed on, only if it is the one
// that is wanted, whole: all frames are checked alike.
func TestAHostileModelOfATourIsRefused(t *testing.T) {
	shards := communities(t, 1500)
	for name, c := range map[string]struct {
		change func(h *head)
		damage func(frame []byte)
		want   string
	}{
		"empty":         {func(*head) {}, func(frame []byte) { clear(frame) }, "the model that came is not the one that was sent"},
		"one bit":       {func(*head) {}, func(frame []byte) { frame[len(frame)-1] ^= 1 }, "it was damaged on its way"},
		"another job's": {func(h *head) { h.job[0]++ }, nil, "a model of another job came"},
		"another one":   {func(h *head) { h.model++ }, nil, "model 2 came as it was after slot 0"},
		"an older one":  {func(h *head) { h.epoch-- }, nil, "after slot 0 of step 1 of epoch 1"},
		"a later one":   {func(h *head) { h.updates++ }, nil, "model 1 came with 1 updates in place of 0"},
	} {
		r := small("sage")
		r.Sharing = strategy.Settings{Strategy: strategy.Leap, Leap: strategy.LeapSettings{Mode: "migrate", Merge: "off"}}
		m := newMesh(2, uneven(len(shards), 2))
		all := m.start(t, r, shards, Options{Threads: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what is not refused would wait for more
		_ = m.each(func(node int) error {
			other := all[1]
			if node == 1 {
				h := head{job: r.digest(strategy.Work{}), epoch: 2, model: 1, rows: 1, length: uint64(4 * other.model.Size())}
				c.change(&h)
				frame := make([]byte, headSize+4*other.model.Size())
				h.seal(frame)
				if c.damage != nil {
					c.damage(frame)
				}
				other.shared.exchange.Offer(exchange.Tag{Epoch: 2, Step: 0, Lane: exchange.LaneModel}, frame)
				return nil
			}
			_, err := all[0].one(ctx, 2, 0)
			if err == nil || !strings.Contains(err.Error(), "epoch 2, step 1: take over model 1 for slot 1 from node n1: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		})
		cancel()
	}
}
