package events

import "testing"

func TestHub(t *testing.T) {
	var h Hub[int]
	h.Send(1) // to nobody
	if h.heard() {
		t.Error("somebody listens")
	}
	c := h.Listen(t.Context())
	for i := range 1000 {
		h.Send(i)
	}
	if got := len(c); got != cap(c) {
		t.Errorf("%d values wait, of %d", got, cap(c))
	}
	if first := <-c; first != 0 {
		t.Errorf("the first is %d", first)
	}
}
