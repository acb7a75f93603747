package triples

import (
	"bytes"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// FuzzTriples reads anything as a part of the triples of a graph that has some.
func FuzzTriples(f *testing.F) {
	f.Add(graph.Train, []byte("a\tr\tb\nb\ts\tc\r\n"))
	f.Add(graph.Test, []byte("a\tr"))
	f.Add(graph.Validation, []byte("\t\t\t\n\xef\xbb\xbf"))
	f.Add(graph.Train, []byte("a\tr\x03s\tb\n"))
	f.Fuzz(func(t *testing.T, part byte, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		readtest.Within(t, 64<<20, func() {
			r := &reader{folder: "it"}
			for of, text := range [][]byte{[]byte("x\tr\ty\n"), b} {
				lines := source.NewLines(t.Context(), "it.txt", bytes.NewReader(text), source.MaxLine, nil)
				err := r.lines(t.Context(), lines, graph.Train+graph.Mark(of)*(part%3))
				lines.Close()
				if err != nil {
					return
				}
			}
			g, err := r.graph()
			if err != nil {
				return
			}
			readtest.Consistent(t, g)
		})
	})
}
