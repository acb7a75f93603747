package train

import (
	"github.com/hopmesh/hopmesh/engine/features"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
)

// distant is what inference has on the host beside a device that can't see what lies
// there: shards, rows of other nodes, and files. Of those it gathers a window and brings
// it over.
type distant struct {
	host   tensor.Device // nil: the device sees them itself
	window tensor.Arena
	held   [1]tensor.Part
}

// windowRows is how many rows are brought over at once.
const windowRows = 4096

func (h *distant) open(d tensor.Device, threads int) (err error) {
	if _, foreign := d.(tensor.Foreign); !foreign {
		return nil
	}
	h.host = cpu.New(threads)
	h.window, err = h.host.NewArena(0)
	return err
}

func (h *distant) close() {
	if h.host == nil {
		return
	}
	if h.window != nil {
		h.window.Close()
	}
	h.host.Close()
	h.host = nil
}

// bring sets y to rows that are gathered on the host, a window from first on each time.
func (h *distant) bring(d tensor.Device, y tensor.Matrix, gather func(x tensor.Matrix, first int)) {
	for first := 0; first < y.Rows; first += windowRows {
		rows := y.RowRange(first, min(windowRows, y.Rows-first))
		h.window.Reset()
		x := h.window.Alloc(y.Type, rows.Rows, rows.Cols)
		gather(x, first)
		d.Write32(rows, x.F32())
	}
}

// fill sets y to the features at these places.
func (i *inference) fill(y tensor.Matrix, places []uint32, far *features.Far) {
	if i.host == nil {
		i.data.features.Dense(i.device, i.work, y, places, far)
		return
	}
	i.distant.bring(i.device, y, func(x tensor.Matrix, first int) {
		i.data.features.Dense(i.host, i.window, x, places[first:][:x.Rows], far)
	})
}

// pick sets y to some of the rows between two stages.
func (i *inference) pick(y, x tensor.Matrix, rows []uint32) {
	i.held[0].X = x
	if i.host == nil || !i.inFile {
		i.device.Gather(y, i.held[:], rows)
		return
	}
	i.distant.bring(i.device, y, func(some tensor.Matrix, first int) {
		i.host.Gather(some, i.held[:], rows[first:][:some.Rows])
	})
}

// rangeOf is n rows of a table from first on.
func (i *inference) rangeOf(t *table, first, n int) tensor.Matrix {
	x := t.x.RowRange(first, n)
	if i.host == nil || t.file == nil {
		return x
	}
	y := i.work.Alloc(x.Type, x.Rows, x.Cols)
	i.device.Write32(y, x.F32())
	return y
}
