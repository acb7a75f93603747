package rows

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

var activations = []string{"Linear", "ReLU", "ELU"}

func word(yes bool, name string) string {
	if yes {
		return name
	}
	return ""
}

// eachRow writes the loop over the argument rows. Rows go on by the arguments named
// after them with Stride, which are bytes.
func eachRow(rows map[string]reg.GPVirtual, order []string, vertices reg.GPVirtual, body func()) {
	count := param64("rows")
	TESTQ(count, count)
	JLE(LabelRef("done"))
	Label("row")
	body()
	if vertices != nil {
		ADDQ(Imm(4), vertices)
	}
	for _, name := range order {
		ADDQ(param64(name+"Stride"), rows[name])
	}
	DECQ(count)
	JNZ(LabelRef("row"))
	Label("done")
	end()
}

func (f *Family) finishKernels() {
	for _, act := range activations {
		for _, bias := range []bool{false, true} {
			for _, drop := range []bool{false, true} {
				if act != "Linear" || bias || drop {
					f.finish(act, bias, drop)
				}
			}
		}
	}
	f.dropKernel()
}

// finish is bias, activation and dropout of some rows.
func (f *Family) finish(act string, withBias, withDrop bool) {
	f.begin("Finish"+act+word(withBias, "Bias")+word(withDrop, "Drop"),
		"func(y, x *float32, yStride, xStride, rows, cols int, bias *float32, vertices *uint32, key uint64, threshold uint32, scale float32)")
	y, x := param64("y"), param64("x")
	var bias, vertices reg.GPVirtual
	var d *dropping
	if withBias {
		bias = param64("bias")
	}
	if withDrop {
		vertices = param64("vertices")
		d = f.dropping()
	}
	w := f.walkOf(param64("cols"))
	eachRow(map[string]reg.GPVirtual{"y": y, "x": x}, []string{"y", "x"}, vertices, func() {
		if withDrop {
			key := GP64()
			MOVL(Mem{Base: vertices}, key.As32())
			child(key)
			d.begin(key)
		}
		w.each("columns", func(t *tail) {
			v := f.load(w.of(x), t)
			if withBias {
				v = f.add(f.load(w.of(bias), t), v)
			}
			switch act {
			case "ReLU":
				v = f.larger(v, f.zero())
			case "ELU":
				v = f.elu(v)
			}
			if withDrop {
				v = d.next(v)
			}
			f.store(v, w.of(y), t)
		})
	})
}

func (f *Family) backKernels() {
	for _, sums := range []bool{false, true} {
		if sums {
			f.back("Linear", false, sums)
		}
		f.back("Linear", true, sums)
		f.back("ReLU", false, sums)
		f.back("ELU", false, sums)
		f.back("ELU", true, sums)
	}
}

// back is the gradient of finish, and the sums of its columns. What ReLU let pass
// is known from y, and so is what was dropped after it.
func (f *Family) back(act string, withDrop, withSums bool) {
	f.begin("Back"+act+word(withDrop, "Drop")+word(withSums, "Sums"),
		"func(dx, dy, y *float32, dxStride, dyStride, yStride, rows, cols int, sums *float32, vertices *uint32, key uint64, threshold uint32, scale, unscale float32)")
	dx, dy := param64("dx"), param64("dy")
	pointers := map[string]reg.GPVirtual{"dx": dx, "dy": dy}
	order := []string{"dx", "dy"}
	var y, sums, vertices reg.GPVirtual
	var d *dropping
	var scale, unscale block
	if act != "Linear" {
		y = param64("y")
		pointers["y"], order = y, append(order, "y")
	}
	if withSums {
		sums = param64("sums")
	}
	if withDrop {
		vertices = param64("vertices")
		d = f.dropping()
	}
	if act == "ReLU" {
		scale = f.broadcast("scale")
	}
	if act == "ELU" && withDrop {
		unscale = f.broadcast("unscale")
	}
	w := f.walkOf(param64("cols"))
	eachRow(pointers, order, vertices, func() {
		if withDrop {
			key := GP64()
			MOVL(Mem{Base: vertices}, key.As32())
			child(key)
			d.begin(key)
		}
		w.each("columns", func(t *tail) {
			g := f.load(w.of(dy), t)
			if withDrop {
				g = d.next(g)
			}
			switch act {
			case "ReLU":
				g = f.ifElseZero(f.above(f.load(w.of(y), t), f.zero()), f.mul(g, scale))
			case "ELU":
				v := f.load(w.of(y), t)
				if withDrop {
					v = f.mul(v, unscale)
				}
				// Above 0 the slope is 1, which is that at 0, too.
				v = f.smaller(v, f.zero())
				g = f.mul(g, f.add(f.number("One", 1), v))
			}
			f.store(g, w.of(dx), t)
			if withSums {
				f.store(f.add(f.load(w.of(sums), t), g), w.of(sums), t)
			}
		})
	})
}
