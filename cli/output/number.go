package output

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseSize reads a number of bytes such as 64GiB, 64G (the same), 64GB (powers
// of ten) or 1048576.
func ParseSize(s string) (uint64, error) {
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
	return fmt.Errorf("%q is not a size such as 64GiB, 1.5TiB or 500MB", s)
}

// Size returns a number of bytes in the largest unit that keeps it above one, and "-" for 0.
func Size(n uint64) string {
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

// ShardList returns shards as ranges: "shards 0-21, 40". It sorts ids.
func ShardList(ids []int) string {
	slices.Sort(ids)
	var list []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i == j {
			list = append(list, strconv.Itoa(ids[i]))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		}
		i = j + 1
	}
	word := "shards "
	if len(ids) == 1 {
		word = "shard "
	}
	return word + strings.Join(list, ", ")
}

// Thousands returns a number with its digits in groups: 1,166,243.
func Thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Percent returns a share of 1 in percent.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Plural returns a number with a noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Duration returns a duration without needless digits.
func Duration(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Seconds returns seconds as a duration with about three digits.
func Seconds(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// Share returns a share in percent, and "" for nil.
func Share(of *float64) string {
	if of == nil {
		return ""
	}
	return Percent(*of)
}

// Bytes returns a number of bytes as Size does, but "0 B" for 0.
func Bytes(n uint64) string {
	if n == 0 {
		return "0 B"
	}
	return Size(n)
}
