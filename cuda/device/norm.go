//go:build cuda

package device

import "github.com/hopmesh/hopmesh/engine/tensor"

// LayerNorm implements tensor.Rows.
func (d *Device) LayerNorm(y, stats, x, gamma, beta tensor.Matrix, e *tensor.Epilogue) {
	mustCompute(y)
	mustBe("x", x, tensor.F32, y.Rows, y.Cols)
	mustBe("stats", stats, tensor.F32, y.Rows, 2)
	mustBe("gamma", gamma, tensor.F32, 1, y.Cols)
	mustBe("beta", beta, tensor.F32, 1, y.Cols)
	mustFit(e, y)
	if !d.begin() {
		return
	}
	defer d.end()
	d.launchEnding("layer_norm", grid{blocks(y.Rows, warpsOfBlock), 1, 1}, d.ending(e, y.Rows), at(y), stride(y), at(stats), stride(stats),
		at(x), stride(x), at(gamma), at(beta), number(y.Rows), number(y.Cols))
}

// LayerNormBack implements tensor.Rows.
func (d *Device) LayerNormBack(dx, dgamma, dbeta, dy, x, stats, gamma tensor.Matrix) {
	mustCompute(dx)
	mustBe("dy", dy, tensor.F32, dx.Rows, dx.Cols)
	mustBe("x", x, tensor.F32, dx.Rows, dx.Cols)
	mustBe("stats", stats, tensor.F32, dx.Rows, 2)
	mustBe("gamma", gamma, tensor.F32, 1, dx.Cols)
	mustBe("dgamma", dgamma, tensor.F32, 1, dx.Cols)
	mustBe("dbeta", dbeta, tensor.F32, 1, dx.Cols)
	if dx.Rows == 0 || !d.begin() {
		return
	}
	defer d.end()
	each, parts := sums(dx.Rows)
	gammas := d.room(4 * parts * dx.Cols)
	betas := d.room(4 * parts * dx.Cols)
	// This comes before dx is written, which may be dy.
	d.launch("layer_norm_columns", grid{parts, blocks(dx.Cols, columnsOfWarp), 1}, gammas.argument(), betas.argument(),
		at(dy), stride(dy), at(x), stride(x), at(stats), stride(stats), number(dx.Rows), number(dx.Cols), number(each))
	d.launch("layer_norm_back", grid{blocks(dx.Rows, warpsOfBlock), 1, 1}, at(dx), stride(dx), at(dy), stride(dy), at(x), stride(x),
		at(stats), stride(stats), at(gamma), number(dx.Rows), number(dx.Cols))
	d.addPartials(dgamma, gammas, parts)
	d.addPartials(dbeta, betas, parts)
}
