package table

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
)

// npy writes NumPy's format, version 1.0: a header in Python notation, padded so that the
// numbers begin at a multiple of 64, then the numbers.
type npy struct {
	tally
	out *bufio.Writer
	raw []byte
}

func newNPY(w io.Writer, h Header) (*npy, error) {
	n := &npy{tally: tally{columns: len(h.Columns), left: h.Rows}, out: bufio.NewWriterSize(w, 1<<16)}
	const magic = "\x93NUMPY\x01\x00"
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", h.Rows, len(h.Columns))
	text += strings.Repeat(" ", 63-(len(magic)+2+len(text))%64) + "\n"
	_, err := n.out.Write(append([]byte(magic), byte(len(text)), byte(len(text)>>8)))
	if err == nil {
		_, err = n.out.WriteString(text)
	}
	return n, err
}

func (n *npy) Write(ids [][]byte, rows []float32) error {
	if err := n.take(ids, rows); err != nil {
		return err
	}
	n.raw = n.raw[:0]
	for _, f := range rows {
		bits := math.Float32bits(f)
		n.raw = append(n.raw, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	_, err := n.out.Write(n.raw)
	return err
}

func (n *npy) Close() error {
	if err := n.end(); err != nil {
		return err
	}
	return n.out.Flush()
}
