package plot

import (
	"math"
	"strconv"
	"strings"
)

// An axis is a range of numbers with ticks at round ones, which are evenly spaced.
type axis struct {
	low, high float64
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

// The measures of ticks.
const (
	mostSteps = 5
	tickGap   = 10 // between the labels of two ticks, at least
)

// newAxis returns the axis from low to high that is so many pixels long. It widens a range
// that is too small to be divided. Low and high are finite, and so is their difference.
func newAxis(low, high, long float64) axis {
	least := math.Max(math.Max(math.Abs(low), math.Abs(high))*1e-9, 1e-290)
	if !(high-low > least) {
		// One value stands in the middle, of a range that shows its size.
		around := math.Max(math.Abs(low)/10, least)
		if low == 0 {
			around = 1
		}
		low, high = low-around, high+around
	}
	a := axis{low: low, high: high}
	for digit, exponent := roundStep((high - low) / mostSteps); ; digit, exponent = nextStep(digit, exponent) {
		ticks := ticksAt(low, high, digit, exponent)
		if len(a.ticks) > 0 && len(ticks) < 2 {
			return a // crowded, but with two ticks
		}
		a.ticks = ticks
		widest := 0.0
		for _, t := range ticks {
			widest = math.Max(widest, width(t.label, tickSize))
		}
		if len(ticks) < 2 || widest+tickGap <= (ticks[1].value-ticks[0].value)/(high-low)*long {
			return a
		}
	}
}

// part returns where a value is between the ends of the axis, from 0 to 1.
func (a axis) part(value float64) float64 { return (value - a.low) / (a.high - a.low) }

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is at least as
// large as a step.
func roundStep(step float64) (digit int64, exponent int) {
	exponent = int(math.Floor(math.Log10(step)))
	for digit = 1; times(digit, exponent) < step*(1-1e-9); digit, exponent = nextStep(digit, exponent) {
	}
	return digit, exponent
}

// nextStep returns the next larger round step.
func nextStep(digit int64, exponent int) (int64, int) {
	switch digit {
	case 1:
		return 2, exponent
	case 2:
		return 5, exponent
	default:
		return 1, exponent + 1
	}
}

// times returns n times a power of ten. It divides by powers that have no exact value.
func times(n int64, exponent int) float64 {
	if exponent < 0 {
		return float64(n) / math.Pow10(-exponent)
	}
	return float64(n) * math.Pow10(exponent)
}

// ticksAt returns the multiples of a step between low and high.
func ticksAt(low, high float64, digit int64, exponent int) (ticks []tick) {
	step := times(digit, exponent)
	first, last := int64(math.Ceil(low/step-1e-9)), int64(math.Floor(high/step+1e-9))
	long := exponent < -4 || times(max(-first, last)*digit, exponent) >= 1e6
	for i := first; i <= last; i++ {
		value := times(i*digit, exponent)
		t := tick{value, strconv.FormatFloat(value, 'f', max(0, -exponent), 64)}
		if long {
			t.label = scientific(i*digit, exponent)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// scientific writes n times a power of ten like 2.5e6.
func scientific(n int64, exponent int) string {
	if n == 0 {
		return "0"
	}
	sign, digits := "", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	exponent += len(digits) - 1
	text := sign + digits[:1]
	if rest := strings.TrimRight(digits[1:], "0"); rest != "" {
		text += "." + rest
	}
	return text + "e" + strconv.Itoa(exponent)
}
