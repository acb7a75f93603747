package pace

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

func TestEachHostHasItsOwnPace(t *testing.T) {
	p, now := New(2, 4, 8), time.Now()
	one := netip.MustParsePrefix("10.0.0.1/32")
	taken := func(host netip.Prefix, tries int) (n int) {
		for range tries {
			if p.Take(host, now) {
				n++
			}
		}
		return n
	}
	if n := taken(one, 100); n != 4 {
		t.Errorf("took %d at once", n)
	}
	now = now.Add(time.Second)
	if n := taken(one, 100); n != 2 {
		t.Errorf("took %d a second later", n)
	}
	other := func(i int) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf("10.1.%d.%d/32", i/256, i%256)) }
	all := 0
	for i := range 1000 {
		all += taken(other(i), 100)
	}
	// Seven more hosts have room; the others share what one may take.
	if all != 8*4 || len(p.hosts) != 8 {
		t.Errorf("a thousand hosts took %d, and %d are remembered", all, len(p.hosts))
	}
	now = now.Add(time.Minute)
	if n := taken(other(2000), 100); n != 4 || len(p.hosts) != 1 {
		t.Errorf("after a minute a new host took %d, and %d are remembered", n, len(p.hosts))
	}
}
