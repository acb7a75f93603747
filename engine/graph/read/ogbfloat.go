package read

// quickFloat reads a finite number as parseFloat does, but takes short ones apart
// itself: as long as digits fit in 53 bits and the power of ten is exact, one
// division or multiplication rounds as it should, and rounding that again to 32
// bits is what NumPy does with what it reads.
func quickFloat(b []byte) (float32, error) {
	const most = 1 << 53 / 10
	var digits uint64
	power, i, seen := 0, 0, false
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		i++
	}
	for point := false; i < len(b); i++ {
		c := b[i] - '0'
		switch {
		case c <= 9 && digits < most:
			digits = digits*10 + uint64(c)
			seen = true
			if point {
				power--
			}
		case b[i] == '.' && !point:
			point = true
		case (b[i] == 'e' || b[i] == 'E') && seen:
			e, ok := smallExponent(b[i+1:])
			if !ok {
				return parseFloat(b)
			}
			power += e
			i = len(b)
		default:
			return parseFloat(b)
		}
	}
	if !seen || power < -22 || power > 22 {
		return parseFloat(b)
	}
	v := float64(digits)
	if power < 0 {
		v /= powersOfTen[-power]
	} else {
		v *= powersOfTen[power]
	}
	if negative {
		v = -v
	}
	return float32(v), nil
}

// smallExponent reads one or two digits with or without a sign.
func smallExponent(b []byte) (int, bool) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 2 {
		return 0, false
	}
	e := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = e*10 + int(c-'0')
	}
	if negative {
		e = -e
	}
	return e, true
}

var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}
