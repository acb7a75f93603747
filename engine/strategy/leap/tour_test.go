package leap_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/batched"
	"github.com/hopmesh/hopmesh/engine/exchange"
	"github.com/hopmesh/hopmesh/engine/peer"
	"github.com/hopmesh/hopmesh/engine/strategy"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/train/traintest"
)

// A model that tours within a step is computed with, and passed on, only if it is the one
// that is wanted, whole: all frames are checked alike.
func TestAHostileModelOfATourIsRefused(t *testing.T) {
	shards := traintest.Communities(t, 1500)
	for name, c := range map[string]struct {
		change func(h *batched.Head)
		damage func(frame []byte)
		want   string
	}{
		"empty":         {func(*batched.Head) {}, func(frame []byte) { clear(frame) }, "the model that came is not the one that was sent"},
		"one bit":       {func(*batched.Head) {}, func(frame []byte) { frame[len(frame)-1] ^= 1 }, "it was damaged on its way"},
		"another job's": {func(h *batched.Head) { h.Job[0]++ }, nil, "a model of another job came"},
		"another one":   {func(h *batched.Head) { h.Model++ }, nil, "model 2 came as it was after slot 0"},
		"an older one":  {func(h *batched.Head) { h.Epoch-- }, nil, "after slot 0 of step 1 of epoch 1"},
		"a later one":   {func(h *batched.Head) { h.Updates++ }, nil, "model 1 came with 1 updates in place of 0"},
	} {
		r := traintest.Small("sage")
		r.Sharing = strategy.Given("leap", "leap.mode=migrate", "leap.merge=off")
		m := traintest.NewMesh(2, traintest.Uneven(len(shards), 2))
		all := m.Start(t, r, shards, train.Options{Threads: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // what is not refused would wait for more
		_ = m.Each(func(node int) error {
			other := all[1]
			if node == 1 {
				h := batched.Head{Job: r.Digest(peer.Work{}), Epoch: 2, Model: 1, Rows: 1, Length: uint64(4 * other.Model.Size())}
				c.change(&h)
				frame := make([]byte, batched.HeadSize+4*other.Model.Size())
				h.Seal(frame)
				if c.damage != nil {
					c.damage(frame)
				}
				other.Run.Session.Exchange.Offer(exchange.Tag{Epoch: 2, Step: 0, Lane: exchange.LaneModel}, frame)
				return nil
			}
			_, err := traintest.StepOnce(ctx, all[0], 2, 0)
			if err == nil || !strings.Contains(err.Error(), "epoch 2, step 1: take over model 1 for slot 1 from node n1: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			return nil
		})
		cancel()
	}
}
