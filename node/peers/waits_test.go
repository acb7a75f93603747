package peers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

// Who waits for long is told of, with the oldest question of each node, whether that is
// reached or not; and what is answered is not.
func TestWaitsAreTold(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *world) {
		asker := w.session(0, 7, 3)
		release := make(chan struct{})
		for _, node := range []int{1, 2} {
			w.serving(node, 7, 3, func(ctx context.Context, from int, q peer.Query, reply func(...[]byte) error) error {
				select {
				case <-release:
					return echo(ctx, from, q, reply)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		ended := make(chan error, 4)
		ask := func(node int, step uint32) {
			q := rows()
			q.Step = step
			go func() {
				_, err := asker.Ask(t.Context(), node, q, nil)
				ended <- err
			}()
		}
		ask(1, 5)
		ask(2, 5)
		time.Sleep(sayAfter / 2)
		ask(1, 6)
		time.Sleep(sayAfter/2 - time.Second)
		synctest.Wait()
		if got := w.seats[0].Waits(key); len(got) != 0 {
			t.Errorf("after %s: %+v", sayAfter-time.Second, got)
		}
		time.Sleep(2 * time.Second)
		wait := func(node int, since time.Duration, lost bool) Wait {
			return Wait{Node: w.seats[node].id.ID(), What: "rows of features (epoch 3, step 5)", For: since, Lost: lost}
		}
		wantWaits(t, w.seats[0].Waits(key), wait(1, sayAfter+time.Second, false), wait(2, sayAfter+time.Second, false))
		w.net.Partition([]string{addrOf(0).Addr().String()}, []string{addrOf(2).Addr().String()})
		time.Sleep(30 * time.Second)
		wantWaits(t, w.seats[0].Waits(key), wait(1, sayAfter+31*time.Second, false), wait(2, sayAfter+31*time.Second, true))
		w.net.Heal()
		time.Sleep(10 * time.Second)
		wantWaits(t, w.seats[0].Waits(key), wait(1, sayAfter+41*time.Second, false), wait(2, sayAfter+41*time.Second, false))
		close(release)
		for range 3 {
			must(t, <-ended)
		}
		if got := w.seats[0].Waits(key); len(got) != 0 || len(asker.contact.asked) != 0 {
			t.Errorf("all is answered, and %+v", got)
		}
		if got := w.seats[0].Waits("00000000"); got != nil {
			t.Errorf("of another job: %+v", got)
		}
		asker.Close(nil)
		if got := w.seats[0].Waits(key); got != nil {
			t.Errorf("of a session that is closed: %+v", got)
		}
	})
}

func wantWaits(t *testing.T, got []Wait, want ...Wait) {
	t.Helper()
	for i := range got {
		got[i].For = got[i].For.Round(time.Second)
	}
	if len(got) != len(want) {
		t.Fatalf("%+v, not %+v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%+v, not %+v", got[i], want[i])
		}
	}
}
