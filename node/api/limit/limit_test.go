package limit

import (
	"net/netip"
	"testing"
	"time"
)

func TestFailuresOfAHost(t *testing.T) {
	var f Failures
	now := time.Unix(1000, 0)
	bad, mapped, good := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range burst {
		if wait := f.Wait(bad, now); wait != 0 {
			t.Fatalf("after %d failures it waits %s", n, wait)
		}
		f.Note(bad, now)
	}
	if wait := f.Wait(mapped, now); wait != each {
		t.Errorf("after %d failures it waits %s, not %s", burst, wait, each)
	}
	if wait := f.Wait(good, now); wait != 0 {
		t.Errorf("another host waits %s", wait)
	}
	if wait := f.Wait(bad, now.Add(each)); wait != 0 {
		t.Errorf("later it waits %s", wait)
	}
	f.Note(bad, now.Add(each))
	if wait := f.Wait(bad, now.Add(each)); wait != each {
		t.Errorf("after one more failure it waits %s", wait)
	}
	later := now.Add(time.Hour)
	f.Note(bad, later)
	if wait := f.Wait(bad, later); wait != 0 {
		t.Errorf("all is forgotten, and it waits %s", wait)
	}
}

func TestNetworks(t *testing.T) {
	var f Failures
	now := time.Unix(1000, 0)
	for range burst {
		f.Note(netip.MustParseAddr("2001:db8:1:2::3%eth0"), now)
		f.Note(netip.Addr{}, now)
	}
	for addr, waits := range map[string]bool{"2001:db8:1:2:9::": true, "2001:db8:1:3::3": false, "192.0.2.1": false} {
		if got := f.Wait(netip.MustParseAddr(addr), now) > 0; got != waits {
			t.Errorf("%s waits: %v", addr, got)
		}
	}
	if f.Wait(netip.Addr{}, now) == 0 {
		t.Error("who has no address does not wait")
	}
}

// A flood from many hosts fills no memory, and does not make the worst be forgotten first.
func TestManyHosts(t *testing.T) {
	var f Failures
	now := time.Unix(1000, 0)
	worst := netip.MustParseAddr("192.0.2.1")
	for range burst {
		f.Note(worst, now)
	}
	for n := range 2 * maxHosts {
		f.Note(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), now)
	}
	if len(f.until) > maxHosts {
		t.Errorf("%d hosts are known", len(f.until))
	}
	if f.Wait(worst, now) == 0 {
		t.Error("the worst was forgotten")
	}
}
