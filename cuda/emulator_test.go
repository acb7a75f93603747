//go:build cuda && emulator

package cuda

import "testing"

// What Detect answers is what Open opens.
func TestOpen(t *testing.T) {
	name, reason, err := Detect("auto")
	if name != "cuda:0" || reason == "" || err != nil {
		t.Fatalf("got %q, %q, %v", name, reason, err)
	}
	d, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a, err := d.NewArena(64)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	m, got := a.Alloc(d.Type(), 1, 2), make([]float64, 2)
	d.Write(m, []float64{3, 4})
	if d.Read(got, m); got[0] != 3 || got[1] != 4 {
		t.Errorf("got %v", got)
	}
}
