package shape

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a socket that notes when packets leave.
type sink struct {
	net.PacketConn
	at    chan time.Duration
	begin time.Time
}

func (s *sink) WriteTo(b []byte, _ net.Addr) (int, error) {
	s.at <- time.Since(s.begin)
	return len(b), nil
}

func (s *sink) Close() error { return nil }

func TestConnKeepsRateAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{at: make(chan time.Duration, 100), begin: time.Now()}
		c := Wrap(s, Link{Rate: 8_000_000, Delay: 5 * time.Millisecond}) // a byte a microsecond
		b := make([]byte, 1000-overhead)
		for range 3 {
			if n, err := c.WriteTo(b, nil); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
		}
		b[0] = 1 // the caller's again
		for i := range 3 {
			if got, want := <-s.at, time.Duration(i+1)*time.Millisecond+5*time.Millisecond; got != want {
				t.Errorf("packet %d left at %v and should at %v", i, got, want)
			}
		}
		for range 60 {
			if _, err := c.WriteTo(b, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := len(s.at); n < 40 || n > 42 {
			t.Errorf("%d of 60 packets went through: those that would wait for more than %v are lost", n, queued)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
