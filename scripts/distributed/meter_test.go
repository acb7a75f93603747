package main

import (
	"testing"
	"time"
)

func TestReadings(t *testing.T) {
	const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      200       1    0    0    0     0       0          0
  eth0: 1000001       9    0    0    0     0          0         0     2002       8    0    0    0     0       0          0
`
	if n, err := sentBy(dev, "eth0"); n != 2002 || err != nil {
		t.Error(n, err)
	}
	if _, err := sentBy(dev, "eth1"); err == nil {
		t.Error("a missing device has sent something")
	}
	if n := pss("00400000-7ffd rollup\nRss:    9000 kB\nPss:    1234 kB\nPss_Anon:  77 kB\n"); n != 1234<<10 {
		t.Error(n)
	}
	if g := groupOf("42 (a name) S 7) R 1 99 99 0 -1"); g != 99 {
		t.Error(g)
	}
	if g := groupOf("42 (x)"); g != 0 {
		t.Error(g)
	}
	if busy := busyIn("cpu  100 1 10 5000 700 2 3 4 50 0\ncpu0 1 1 1\n"); busy != 1200*time.Millisecond {
		t.Error(busy)
	}
	if busy := busyIn("nothing"); busy != 0 {
		t.Error(busy)
	}
}

// Memory is the most that was seen, and epochs lie between marks.
func TestMeter(t *testing.T) {
	m := newMeter(t.Context(), nil, func() []int { return nil })
	m.marks = []mark{{100, time.Second}, {150, 3 * time.Second}, {350, 4 * time.Second}}
	var r run
	m.end(&r)
	if len(r.Bytes) != 2 || r.Bytes[0] != 50 || r.Bytes[1] != 200 || r.Processor[0] != 2 || r.Processor[1] != 1 {
		t.Errorf("%+v", r)
	}
}
