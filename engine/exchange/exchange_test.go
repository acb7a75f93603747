package exchange

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hopmesh/hopmesh/engine/peer"
)

func TestTakeWaitsForAnOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := mesh(2)
		var tally peer.Tally
		tag := Tag{Epoch: 3, Step: 70000, Lane: LaneModel, Index: 1<<24 - 1}
		got, done := make([]byte, 5), make(chan error)
		go func() { done <- all[1].Take(t.Context(), 0, peer.Model, tag, got, &tally) }()
		synctest.Wait()
		// Neither is another index, nor another lane, nor another step what it waits for.
		for _, other := range []Tag{{3, 70000, LaneModel, 0}, {3, 70000, LaneHalo, 1<<24 - 1}, {2, 70000, LaneModel, 1<<24 - 1}} {
			all[0].Offer(other, []byte("wrong"))
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("took %q, %v before it was offered", got, err)
		default:
		}
		all[0].Offer(tag, []byte("he"), nil, []byte("llo"))
		must(t, <-done)
		if string(got) != "hello" {
			t.Errorf("took %q", got)
		}
		counts := tally.Read()
		if want := uint64(peer.QueryFraming + peer.AnswerFraming + 5); counts.Bytes[peer.Model] != want || counts.Requests[peer.Model] != 1 {
			t.Errorf("counted %v, want one request of %d bytes", counts, want)
		}
		clear(got)
		must(t, all[1].Take(t.Context(), 0, peer.Model, tag, got, nil)) // as often as they ask
		if string(got) != "hello" {
			t.Errorf("took %q the second time", got)
		}
	})
}

func TestTakeWantsExactlyWhatIsOffered(t *testing.T) {
	_, all := mesh(2)
	tag := Tag{Epoch: 1, Lane: LaneModel}
	all[0].Offer(tag, []byte("hello"))
	for _, size := range []int{0, 4, 6} {
		err := all[1].Take(t.Context(), 0, peer.Model, tag, make([]byte, size), nil)
		if err == nil || !strings.Contains(err.Error(), "epoch 1, step 0") {
			t.Errorf("took 5 bytes as %d: %v", size, err)
		}
	}
	all[0].Offer(Tag{Epoch: 1, Lane: LaneModel, Index: 1})
	must(t, all[1].Take(t.Context(), 0, peer.Model, Tag{Epoch: 1, Lane: LaneModel, Index: 1}, nil, nil))
}

func TestStepsLongPastAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := mesh(2)
		late := make(chan error)
		tag := func(epoch, step uint32) Tag { return Tag{Epoch: epoch, Step: step, Lane: LaneModel} }
		go func() {
			late <- all[1].Take(t.Context(), 0, peer.Model, Tag{Epoch: 1, Step: 0, Lane: LaneModel, Index: 9}, nil, nil)
		}()
		synctest.Wait()
		all[0].Offer(Tag{Epoch: 1, Step: 0, Lane: LaneHalo}, []byte("x"))
		for step := range uint32(2) {
			all[0].Offer(tag(1, step), []byte("x"))
		}
		to := make([]byte, 1)
		must(t, all[1].Take(t.Context(), 0, peer.Model, tag(1, 0), to, nil))
		all[0].Offer(tag(2, 0), []byte("x")) // the epoch's end counts as any step's
		must(t, all[1].Take(t.Context(), 0, peer.Model, tag(1, 1), to, nil))
		if err := all[1].Take(t.Context(), 0, peer.Model, tag(1, 0), to, nil); !errors.Is(err, peer.ErrRefused) {
			t.Errorf("what was offered two steps before: %v", err)
		}
		if err := <-late; !errors.Is(err, peer.ErrRefused) {
			t.Errorf("who waited for what will never be offered: %v", err)
		}
		// Lanes go ahead of each other.
		must(t, all[1].Take(t.Context(), 0, peer.Model, Tag{Epoch: 1, Step: 0, Lane: LaneHalo}, to, nil))
	})
}

func TestNothingGrows(t *testing.T) {
	_, all := mesh(1)
	for step := range uint32(1000) {
		for i := range uint32(3) {
			all[0].Offer(Tag{Epoch: 1, Step: step, Lane: LaneModel, Index: i}, []byte("x"))
		}
	}
	l := all[0].lanes[LaneModel]
	if kept, idle := len(l.offers), len(l.idle); kept != 6 || idle > 3 {
		t.Errorf("%d offers and %d idle ones are left of 1000 steps", kept, idle)
	}
}

// reading asks for an offer, and stays in its reply until told.
func reading(t *testing.T, d *desk, tag Tag) (parts chan string, goOn chan struct{}) {
	parts, goOn = make(chan string), make(chan struct{})
	ctx := t.Context()
	go func() {
		err := d.handler(ctx, 1, question(tag, 100), func(p ...[]byte) error {
			parts <- "reading"
			<-goOn
			var all string
			for _, part := range p {
				all += string(part)
			}
			parts <- all
			return nil
		})
		if err != nil {
			parts <- err.Error()
		}
	}()
	return parts, goOn
}

func TestWithdrawWaitsForWhoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		x := New(d, work(2, 0))
		tag, memory := Tag{Epoch: 1, Lane: LaneModel}, []byte("hello")
		x.Offer(tag, memory)
		parts, goOn := reading(t, d, tag)
		<-parts
		gone := make(chan error)
		go func() { gone <- x.Withdraw(t.Context(), tag) }()
		synctest.Wait()
		select {
		case err := <-gone:
			t.Fatalf("it is withdrawn while it is being read: %v", err)
		default:
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the plan has changed"))
		if err := x.Withdraw(ctx, tag); err == nil || !strings.Contains(err.Error(), "the plan has changed") {
			t.Errorf("withdrawing under a context that has ended: %v", err)
		}
		refused := d.handler(t.Context(), 1, question(tag, 100), func(...[]byte) error { return nil })
		if !errors.Is(refused, peer.ErrRefused) {
			t.Errorf("what is being withdrawn was given: %v", refused)
		}
		close(goOn)
		if got := <-parts; got != "hello" {
			t.Errorf("read %q", got)
		}
		must(t, <-gone)
		must(t, x.Withdraw(t.Context(), tag)) // once more does nothing
		must(t, x.Withdraw(t.Context(), Tag{Epoch: 9}))
	})
}

// What is still read when it is forgotten is not written over by what comes after.
func TestWhatIsReadIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		x := New(d, work(1, 0))
		offer := func(step uint32, text string) Tag {
			tag := Tag{Epoch: 1, Step: step, Lane: LaneMessages}
			x.mu.Lock()
			defer x.mu.Unlock()
			o := x.blank(tag.Lane, len(text))
			copy(o.rows[0], text)
			x.publish(tag, o)
			return tag
		}
		parts, goOn := reading(t, d, offer(0, "first"))
		<-parts
		for step := range uint32(5) {
			offer(step+1, "later")
		}
		close(goOn)
		if got := <-parts; got != "first" {
			t.Errorf("read %q", got)
		}
	})
}

func TestContextsEndAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := mesh(3)
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the plan has changed")
		ends := make(chan error)
		tag := Tag{Epoch: 1}
		go func() { ends <- all[0].Take(ctx, 1, peer.Model, tag, nil, nil) }()
		go func() { _, err := all[0].Gather(ctx, tag, nil, nil); ends <- err }()
		go func() {
			_, err := Reduce(ctx, all[0], Round{Tag: tag}, [][]float32{{1}}, make([]float32, 1))
			ends <- err
		}()
		synctest.Wait()
		cancel(cause)
		for range 3 {
			if err := <-ends; !errors.Is(err, cause) {
				t.Errorf("ended by %v", err)
			}
		}
		synctest.Wait()
		for i, x := range all {
			for _, l := range x.lanes {
				if len(l.waiting) > 0 {
					t.Errorf("node %d still keeps who waited", i)
				}
			}
		}
	})
}

func TestATooLargeIndexIsFoundAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an index of 25 bits was offered")
		}
	}()
	_, all := mesh(1)
	all[0].Offer(Tag{Index: 1 << 24})
}

// Whatever a node asks, it gets parts of what is offered, within its limit, or an error.
func FuzzQuestions(f *testing.F) {
	columns := make([]byte, columnsSize)
	putColumns(columns, 1, 3)
	f.Add(uint32(1), uint32(0), uint32(0), columns, 100)
	f.Add(uint32(1), uint32(0), uint32(0), []byte{}, 100)
	f.Add(uint32(1), uint32(0), uint32(0), []byte{}, 3)
	f.Add(uint32(1), uint32(0), uint32(0), []byte{1}, 100)
	backwards := make([]byte, columnsSize)
	putColumns(backwards, 3, 1)
	f.Add(uint32(1), uint32(0), uint32(0), backwards, 100)
	beyond := make([]byte, columnsSize)
	putColumns(beyond, 1, 6)
	f.Add(uint32(1), uint32(0), uint32(0), beyond, 100)
	f.Add(uint32(1), uint32(1), uint32(255<<24), columns, 0)
	putColumns(columns, -1, -1)
	f.Add(uint32(1), uint32(0), uint32(0), columns, 100)
	d := &desk{}
	x := New(d, work(2, 0))
	x.mu.Lock()
	o := x.blank(0, 0)
	o.head = append(o.head, "head"...)
	o.rows = append(o.rows, []byte("row 1"), []byte("row 2"))
	x.publish(Tag{Epoch: 1}, o)
	x.mu.Unlock()
	ended, end := context.WithCancel(f.Context())
	end()
	f.Fuzz(func(t *testing.T, epoch, step, part uint32, body []byte, limit int) {
		replied := 0
		err := d.handler(ended, 1, peer.Query{Epoch: epoch, Step: step, Part: part, Body: body, Limit: limit}, func(parts ...[]byte) error {
			for _, p := range parts {
				replied += len(p)
			}
			if string(parts[0]) != "head" || len(parts) != 3 || len(parts[1]) != len(parts[2]) {
				t.Errorf("answered %q", parts)
			}
			return nil
		})
		if replied > max(limit, 0) || (err == nil) != (replied > 0) {
			t.Errorf("replied %d bytes where %d are asked for, and then %v", replied, limit, err)
		}
	})
}
