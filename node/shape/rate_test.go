package shape

import (
	"strings"
	"testing"
)

func TestRates(t *testing.T) {
	for text, want := range map[string]uint64{"1bit": 1, "64kbit": 64_000, "100mbit": 100_000_000, "2.5gbit": 2_500_000_000} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
		if again := FormatRate(got); again != text {
			t.Errorf("%s is written %s", text, again)
		}
	}
	for _, text := range []string{"", "100", "mbit", "-1mbit", "0bit", "NaNbit", "Infgbit", "9e9gbit", "1mbyte"} {
		if got, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), "write it like 100mbit") {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}
