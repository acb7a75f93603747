package train

import (
	"io"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// writeTensors writes a file of tensors: its header, then each param of each section.
func writeTensors(w io.Writer, sections []section, metadata map[string]string) error {
	tensors, numbers := tensorsOf(sections)
	layout, err := safetensors.NewLayout(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(layout.Header()); err != nil {
		return err
	}
	buffer := make([]float32, numbers)
	for _, s := range sections {
		all := s.read(buffer)
		for _, p := range s.params {
			if _, err := w.Write(bytesOf(all[p.Offset:][:p.Rows*p.Cols])); err != nil {
				return err
			}
		}
	}
	return nil
}
