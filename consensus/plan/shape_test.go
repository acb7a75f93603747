package plan

import "testing"

// The shape is that of the fields: the same each time, and of some length.
func TestShape(t *testing.T) {
	if a, b := Shape(), Shape(); a != b || len(a) != 16 {
		t.Errorf("%q, %q", a, b)
	}
}
