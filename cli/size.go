package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseSize reads a number of bytes such as 64GiB, 64G (the same), 64GB (powers
// of ten) or 1048576.
func parseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "KMGTiBkmgtb ")
	unit := strings.ToLower(strings.TrimSpace(s[len(digits):]))
	factor := uint64(1)
	if unit != "" && unit != "b" {
		base := uint64(1024)
		power := strings.Index("kmgt", unit[:1]) + 1
		switch unit[1:] {
		case "b":
			base = 1000
		case "", "ib":
		default:
			power = 0
		}
		if power == 0 {
			return 0, notASize(s)
		}
		for range power {
			factor *= base
		}
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		if n > math.MaxUint64/factor {
			return 0, notASize(s)
		}
		return n * factor, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0) || f*float64(factor) >= 1<<63 || strings.ContainsAny(digits, "eExXpP_") {
		return 0, notASize(s)
	}
	return uint64(f * float64(factor)), nil
}

func notASize(s string) error {
	return fmt.Errorf("%q is no size such as 64GiB, 1.5TiB or 500MB", s)
}

// formatSize shows bytes in the largest unit that keeps the number above one.
func formatSize(n uint64) string {
	if n == 0 {
		return "-"
	}
	const units = "KMGT"
	v, unit := float64(n), -1
	for v >= 1024 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	if unit < 0 {
		return fmt.Sprintf("%d B", n)
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " " + units[unit:unit+1] + "iB"
}
