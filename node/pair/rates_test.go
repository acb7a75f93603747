package pair

import "testing"

func TestRates(t *testing.T) {
	bandwidth, roundTrip, err := Rates(t.Context(), t.TempDir(), "test")
	if err != nil || bandwidth < 1e6 || bandwidth > 1e12 || roundTrip <= 0 || roundTrip > 1 {
		t.Errorf("%g bytes a second, %g s for a question, %v", bandwidth, roundTrip, err)
	}
	t.Logf("%.3g GB/s, %.0f us", bandwidth/1e9, roundTrip*1e6)
}
