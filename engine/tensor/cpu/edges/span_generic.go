package edges

import "math"

// sumGeneric sums a span in Go, using sum as a row of scratch.
func sumGeneric(s *span, sum []float32) {
	width := s.cols / s.heads
	for r := range len(s.indptr) - 1 {
		y := s.y[r*s.yStride:][:s.cols]
		clear(sum)
		if s.onward {
			copy(sum, y)
		}
		i, end := int(s.indptr[r]-s.indptr[0]), int(s.indptr[r+1]-s.indptr[0])
		if s.values == nil && s.half == nil {
			for ; i+4 <= end; i += 4 {
				add4(sum, s.source(i), s.source(i+1), s.source(i+2), s.source(i+3))
			}
		}
		for ; i < end; i++ {
			switch {
			case s.half != nil && s.values == nil:
				addHalf(sum, s.half[int(s.indices[i])*s.xStride:], 1)
			case s.half != nil:
				x := s.half[int(s.indices[i])*s.xStride:]
				for h := range s.heads {
					addHalf(sum[h*width:][:width], x[h*width:], s.values[i*s.heads+h])
				}
			case s.values == nil:
				for j, v := range s.source(i)[:len(sum)] {
					sum[j] += v
				}
			default:
				x := s.source(i)
				for h := range s.heads {
					addWeighted(sum[h*width:][:width], x[h*width:], s.values[i*s.heads+h])
				}
			}
		}
		if s.scale != nil {
			for h := range s.heads {
				for j := h * width; j < (h+1)*width; j++ {
					sum[j] *= s.scale[r*s.heads+h]
				}
			}
		}
		if s.add {
			for j, v := range sum {
				y[j] += v
			}
		} else {
			copy(y, sum)
		}
	}
}

// source returns the row of the entry's source.
func (s *span) source(entry int) []float32 {
	return s.x[int(s.indices[entry])*s.xStride:][:s.cols]
}

// add4 adds four rows at once, so that their cache misses overlap.
func add4(sum, a, b, c, d []float32) {
	a, b, c, d = a[:len(sum)], b[:len(sum)], c[:len(sum)], d[:len(sum)]
	for j, v := range sum {
		v += a[j]
		v += b[j]
		v += c[j]
		sum[j] = v + d[j]
	}
}

func addWeighted(sum, x []float32, w float32) {
	for j, v := range x[:len(sum)] {
		sum[j] += w * v
	}
}

func addHalf(sum []float32, x []uint16, w float32) {
	for j, v := range x[:len(sum)] {
		sum[j] += w * math.Float32frombits(uint32(v)<<16)
	}
}
