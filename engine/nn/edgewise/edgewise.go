// Package edgewise has the convolutions that compute a row for each edge: gat and gin where they
// read features of edges, and mpnn. Importing it makes them known to package nn.
//
// They are written in the operations that devices have, over two sparse matrices of a block's
// entries (sample.Along): one has the source of each entry, the other the entries of each target.
// Price: memory for a row or two of each edge, in place of none.
package edgewise

import (
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

func init() {
	nn.RegisterAlong("gat", newGAT)
	nn.RegisterAlong("gin", newGINE)
	nn.Register("mpnn", nn.Kind{Weighting: sample.Ones, New: newMPNN, Along: true})
	nn.RegisterAlong("mpnn", newMPNN)
}

// entries returns a block's matrices of entries, and the features of their edges in the memory of
// the pass.
func entries(c *nn.Call, columns int) (*sample.Along, tensor.Matrix) {
	a := c.Block.EntriesAlong(columns)
	if columns == 0 {
		return a, tensor.Matrix{}
	}
	rows := c.New(a.Sources.Rows, columns)
	if c.Block.Along != nil { // else it is only counted
		c.Device.Write32(rows, a.Rows)
	}
	return a, rows
}

// relu is the activation of messages, behind a bias.
func relu(c *nn.Call, bias tensor.Matrix) *tensor.Epilogue {
	return c.Epilogue(tensor.Epilogue{Bias: bias, Activation: tensor.ReLU})
}
