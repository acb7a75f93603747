package loopback

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopmesh/hopmesh/engine/peer"
)

var _ peer.Peers = (*Node)(nil)

// echo answers with what it was asked, in two parts.
func echo(_ context.Context, from int, q peer.Query, reply func(parts ...[]byte) error) error {
	return reply([]byte{byte(from)}, q.Body)
}

func question(body string, limit int) peer.Query {
	return peer.Query{Service: peer.Rows, Kind: peer.Feature, Body: []byte(body), Limit: limit}
}

func TestAnswers(t *testing.T) {
	net := New(3)
	net.Node(2).Answer(peer.Rows, echo)
	net.Node(2).Open()
	net.Node(2).Open() // once more is the same
	var tally peer.Tally
	q := question("hello", 6)
	q.Tally = &tally
	buf := make([]byte, 6)
	got, err := net.Node(1).Ask(t.Context(), 2, q, buf)
	if err != nil || string(got) != "\x01hello" || &got[0] != &buf[0] {
		t.Errorf("answered %q, %v", got, err)
	}
	c := tally.Read()
	if want := uint64(peer.QueryFraming + 5 + peer.AnswerFraming + 6); c.Bytes[peer.Feature] != want || c.Requests[peer.Feature] != 1 {
		t.Errorf("counted %+v, want one request of %d bytes", c, want)
	}
	if got, err := net.Node(1).Ask(t.Context(), 2, question("hello", 6), nil); err != nil || string(got) != "\x01hello" {
		t.Errorf("answered %q without a buffer, %v", got, err)
	}
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	net := New(2)
	broken := errors.New("the disk is gone")
	net.Node(0).Answer(peer.Rows, echo)
	net.Node(0).Answer(peer.Draws, func(context.Context, int, peer.Query, func(...[]byte) error) error { return nil })
	net.Node(0).Answer(peer.Columns, func(context.Context, int, peer.Query, func(...[]byte) error) error { return broken })
	net.Node(0).Open()
	ask := func(from, to int, s peer.Service, limit int) error {
		q := question("hello", limit)
		q.Service = s
		var tally peer.Tally
		q.Tally = &tally
		_, err := net.Node(from).Ask(t.Context(), to, q, nil)
		if tally.Read() != (peer.Counts{}) {
			t.Errorf("a question without an answer was counted: %+v", tally.Read())
		}
		return err
	}
	if err := ask(1, 0, peer.Rows, 5); err == nil || !strings.Contains(err.Error(), "over the limit of 5") {
		t.Errorf("an answer that is too long: %v", err)
	}
	if err := ask(1, 0, peer.Offers, 9); !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "node n0") {
		t.Errorf("a service that there is not: %v", err)
	}
	if err := ask(1, 0, peer.Draws, 9); err == nil {
		t.Error("no answer is one")
	}
	if err := ask(1, 0, peer.Columns, 9); !errors.Is(err, broken) {
		t.Errorf("a handler that fails: %v", err)
	}
	if err := ask(1, 1, peer.Rows, 9); err == nil {
		t.Error("a node asks itself")
	}
	net.Trouble = func(_ context.Context, from, to int, q peer.Query) error {
		if from != 1 || to != 0 || string(q.Body) != "hello" {
			t.Errorf("trouble is asked about %d to %d, %q", from, to, q.Body)
		}
		return broken
	}
	if err := ask(1, 0, peer.Rows, 9); !errors.Is(err, broken) {
		t.Errorf("in trouble: %v", err)
	}
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := New(2)
		net.Delay = time.Second
		net.Node(0).Answer(peer.Rows, echo)
		begun := time.Now()
		time.AfterFunc(time.Minute, net.Node(0).Open) // until then questions wait
		if _, err := net.Node(1).Ask(t.Context(), 0, question("hello", 9), nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != time.Minute+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestContextsEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := errors.New("the plan has changed")
		for _, open := range []bool{false, true} {
			net := New(2)
			net.Delay = time.Hour
			net.Node(0).Answer(peer.Rows, echo)
			if open {
				net.Node(0).Open()
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(changed) })
			begun := time.Now()
			_, err := net.Node(1).Ask(ctx, 0, question("hello", 9), nil)
			if !errors.Is(err, changed) || time.Since(begun) != time.Second {
				t.Errorf("open %v: ended by %v after %s", open, err, time.Since(begun))
			}
		}
	})
}
