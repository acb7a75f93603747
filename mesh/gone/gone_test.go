package gone

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// far is a node at the other end of a connection, and the socket of this one.
type far struct {
	net.PacketConn
	mu             sync.Mutex
	sent, received uint64
	deaf           bool // it receives nothing
	refuses        bool // its port does
	answers        bool // when it is asked
	knocks, asked  int
	done           chan struct{}
}

func (f *far) Refuses(netip.AddrPort) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knocks++
	return f.refuses
}

func (f *far) counts() (sent, received uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent, f.received
}

func (f *far) ask(context.Context) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	answered := make(chan struct{})
	if f.answers {
		close(answered)
	}
	return answered
}

// idle counts the packets of a connection that rests.
func idle() (sent, received uint64) { return 10, 10 }

// send sends the node a packet every 100 ms for so long.
func (f *far) send(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; <-time.After(100 * time.Millisecond) {
		f.mu.Lock()
		f.sent++
		if !f.deaf {
			f.received++
		}
		f.mu.Unlock()
	}
}

func TestWhoHasEnded(t *testing.T) {
	for _, c := range []struct {
		name      string
		node      *far
		during    func(f *far) // between the refusal and the verdict
		dead      bool
		mustKnock bool
	}{
		{name: "a process that was killed", node: &far{deaf: true, refuses: true}, dead: true, mustKnock: true},
		{name: "one that is stopped or very busy", node: &far{deaf: true}, mustKnock: true},
		{name: "one that is well", node: &far{refuses: true}, mustKnock: true},
		{name: "one that answers though its port refuses", node: &far{deaf: true, refuses: true, answers: true}, mustKnock: true},
		{name: "one that is heard meanwhile", node: &far{deaf: true, refuses: true}, mustKnock: true, during: func(f *far) { f.received++ }},
		{name: "one whose connection ends meanwhile", node: &far{deaf: true, refuses: true}, mustKnock: true, during: func(f *far) { close(f.done) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := c.node
				f.done = make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				var said []string
				say := func(what string) func() {
					return func() {
						f.mu.Lock()
						defer f.mu.Unlock()
						said = append(said, what)
					}
				}
				links := []Link{
					{Key: f, Peer: "p", Counts: f.counts, Ask: f.ask, Done: f.done, Close: say("close"), Ended: say("ended")},
					{Key: 2, Peer: "p", Counts: idle, Close: say("close another"), Ended: say("ended again")},
					{Key: 3, Peer: "q", Counts: idle, Close: say("close another node's"), Ended: say("another node ended")},
				}
				watched := make(chan struct{})
				go func() {
					defer close(watched)
					Watch(ctx, f, func() []Link { return links })
				}()
				f.send(time.Second)
				if c.during != nil {
					f.mu.Lock()
					c.during(f)
					f.mu.Unlock()
				}
				f.send(700 * time.Millisecond)
				cancel()
				<-watched
				var want []string
				if c.dead {
					want = []string{"close", "close another", "ended"}
				}
				if !slices.Equal(said, want) {
					t.Errorf("it did %q, not %q", said, want)
				}
				if (f.knocks > 0) != c.mustKnock {
					t.Errorf("its port was tried %d times", f.knocks)
				}
			})
		})
	}
}

// A connection that rests is left alone, and one whose last packet needed no answer is tried once.
func TestRestingConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{deaf: true}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			Watch(ctx, f, func() []Link { return []Link{{Key: f, Peer: "p", Counts: f.counts, Ask: f.ask}} })
		}()
		<-time.After(time.Minute)
		if f.knocks != 0 {
			t.Errorf("the port of a node that was sent nothing was tried %d times", f.knocks)
		}
		f.send(100 * time.Millisecond)
		<-time.After(time.Minute)
		if f.knocks != 1 || f.asked != 0 {
			t.Errorf("the port of a node that was sent one packet was tried %d times, and it was asked %d times", f.knocks, f.asked)
		}
		cancel()
		<-watched
	})
}

func TestKnock(t *testing.T) {
	open := func() (*net.UDPConn, netip.AddrPort) {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
	}
	c, to := open()
	refuses := knocker(c)
	if refuses(t.Context(), to, firstWait) {
		t.Error("an open port refuses packets")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { ended <- refuses(ctx, to, time.Hour) }()
	cancel()
	if <-ended {
		t.Error("an open port refuses packets when nobody asks any more")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !refuses(t.Context(), to, wait) {
		t.Error("a closed port refuses nothing")
	}
	// A packet may get no refusal although the port is closed. One that is closed after the first packet
	// is such a port.
	c, to = open()
	go func() { ended <- refuses(t.Context(), to, time.Hour) }()
	_, _, err := c.ReadFrom(make([]byte, 1))
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	if !<-ended {
		t.Error("one packet without a refusal is enough")
	}
	if knocker(struct{ net.PacketConn }{c}) != nil {
		t.Error("a socket that is none of the kernel's knows what is refused")
	}
}

// The port of a node behind a router or a firewall may refuse packets while the node lives: then it
// says nothing when it does so later.
func TestAPortThatRefusesWhileItsNodeLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, said := &far{refuses: true}, []string(nil)
		link := Link{
			Key: f, Peer: "p", Counts: f.counts, Ask: f.ask,
			Close: func() { said = append(said, "close") }, Ended: func() { said = append(said, "ended") },
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			Watch(ctx, f, func() []Link { return []Link{link} })
		}()
		f.send(time.Minute)
		f.mu.Lock()
		f.deaf = true // it is stopped for a while
		tries := f.knocks
		f.mu.Unlock()
		f.send(3 * time.Second)
		cancel()
		<-watched
		if len(said) > 0 || tries != 1 {
			t.Errorf("it did %q; while the node was well, its port was tried %d times", said, tries)
		}
	})
}

// What has come about with a process that takes the place of another goes on.
func TestAProcessThatTakesThePlaceOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{deaf: true, refuses: true}
		var mu sync.Mutex
		var said []string
		link := func(key any, name string, counts func() (uint64, uint64)) Link {
			say := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, what+" "+name)
			}
			return Link{Key: key, Peer: "p", Counts: counts, Ask: f.ask, Close: func() { say("close") }, Ended: func() { say("ended") }}
		}
		begin := time.Now()
		links := func() []Link {
			list := []Link{link(1, "old", f.counts)}
			if time.Since(begin) > time.Second {
				list = append(list, link(2, "young", idle))
			}
			return list
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			Watch(ctx, f, links)
		}()
		f.send(1700 * time.Millisecond)
		cancel()
		<-watched
		if want := []string{"close old", "ended old"}; !slices.Equal(said, want) {
			t.Errorf("it did %q, not %q", said, want)
		}
	})
}

// A node that is heard on any of its connections lives.
func TestANodeThatIsHeardElsewhereLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, other := &far{deaf: true, refuses: true}, &far{}
		var closed int
		links := []Link{
			{Key: 1, Peer: "p", Counts: f.counts, Ask: f.ask, Close: func() { closed++ }, Ended: func() { closed++ }},
			{Key: 2, Peer: "p", Counts: other.counts, Ask: other.ask, Close: func() { closed++ }, Ended: func() { closed++ }},
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched, sent := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			Watch(ctx, f, func() []Link { return links })
		}()
		go func() {
			defer close(sent)
			other.send(2 * time.Second)
		}()
		f.send(2 * time.Second)
		<-sent
		cancel()
		<-watched
		if closed > 0 || f.knocks == 0 {
			t.Errorf("%d things ended, after its port was tried %d times", closed, f.knocks)
		}
	})
}
