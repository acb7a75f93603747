package pair

import "testing"

func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), t.TempDir(), "test")
	if err != nil || r.Bandwidth < 1e6 || r.Bandwidth > 1e12 || r.RoundTrip <= 0 || r.RoundTrip > 1 || r.Byte <= 0 || r.Byte > 1e-6 || r.Question <= 0 || r.Question > 1 {
		t.Errorf("%+v, %v", r, err)
	}
	t.Logf("%.3g GB/s, %.0f us; %.3g ns of processor time a byte, and %.0f us a question", r.Bandwidth/1e9, r.RoundTrip*1e6, r.Byte*1e9, r.Question*1e6)
}
