package meshtest

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pair is two sockets of one network, and a function that says after how long a
// packet from a to b arrived, or -1.
func pair(t *testing.T, f func(n *Network, send func() time.Duration)) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(1)
		a, b := n.Listen("10.0.0.1", 1), n.Listen("10.0.0.2", 1)
		defer a.Close()
		defer b.Close()
		f(n, func() time.Duration {
			begin := time.Now()
			if _, err := a.WriteTo([]byte("hello"), b.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			_ = b.SetReadDeadline(begin.Add(time.Second))
			buf := make([]byte, 16)
			count, from, err := b.ReadFrom(buf)
			if err != nil {
				return -1
			}
			if string(buf[:count]) != "hello" || from.(*net.UDPAddr).IP.String() != "10.0.0.1" {
				t.Fatalf("%q came from %s", buf[:count], from)
			}
			return time.Since(begin)
		})
	})
}

func TestPacketsTakeTheirTime(t *testing.T) {
	pair(t, func(n *Network, send func() time.Duration) {
		if d := send(); d != Latency {
			t.Errorf("took %s", d)
		}
		n.Slow("10.0.0.2", 30*time.Millisecond)
		if d := send(); d != Latency+30*time.Millisecond {
			t.Errorf("took %s on a slow way", d)
		}
	})
}

func TestCutsAreOneWayAndHeal(t *testing.T) {
	pair(t, func(n *Network, send func() time.Duration) {
		n.Cut("10.0.0.2", "10.0.0.1")
		if send() < 0 {
			t.Error("the other direction was cut")
		}
		n.Cut("10.0.0.1", "10.0.0.2")
		if send() >= 0 {
			t.Error("a packet came through a cut")
		}
		n.Heal()
		if send() < 0 {
			t.Error("a healed way is still cut")
		}
		n.Partition([]string{"10.0.0.2"}, []string{"10.0.0.1"})
		if send() >= 0 {
			t.Error("a packet came through a partition")
		}
	})
}

func TestLossIsAShareOfAll(t *testing.T) {
	pair(t, func(n *Network, send func() time.Duration) {
		n.Lose(0.3, 0)
		lost := 0
		for range 1000 {
			if send() < 0 {
				lost++
			}
		}
		if lost < 250 || lost > 350 {
			t.Errorf("%d of 1000 were lost", lost)
		}
	})
}
