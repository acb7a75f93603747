package shape

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are those of tc, the longest name first.
var units = []struct {
	name string
	bits float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}}

// ParseRate parses a rate as tc does, such as 100mbit or 1gbit. It returns bits per
// second.
func ParseRate(s string) (uint64, error) {
	for _, u := range units {
		number, found := strings.CutSuffix(s, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if bits := n * u.bits; err == nil && bits >= 1 && bits <= 1e15 {
			return uint64(math.Round(bits)), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is no rate: write it like 100mbit or 1gbit", s)
}

// FormatRate formats a rate so that ParseRate can parse it.
func FormatRate(bits uint64) string {
	best := units[len(units)-1]
	for _, u := range units {
		if float64(bits) >= u.bits && u.bits > best.bits {
			best = u
		}
	}
	return strconv.FormatFloat(float64(bits)/best.bits, 'f', -1, 64) + best.name
}
