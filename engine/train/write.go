package train

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
)

// digestName is what the digest of all tensors, one after the other, is called in the
// metadata.
const digestName = "tensors_sha256"

// writeTensors writes a file of tensors: its header, with a digest of them, then each
// param of each section.
func writeTensors(w io.Writer, sections []section, metadata map[string]string) error {
	tensors, numbers := tensorsOf(sections)
	digest := sha256.New()
	if err := writeNumbers(digest, sections, numbers); err != nil {
		return err
	}
	metadata[digestName] = hex.EncodeToString(digest.Sum(nil))
	layout, err := safetensors.NewLayout(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(layout.Header()); err != nil {
		return err
	}
	return writeNumbers(w, sections, numbers)
}

func writeNumbers(w io.Writer, sections []section, most int) error {
	buffer := make([]float32, most)
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

// undamaged compares the tensors of a file with their digest.
func undamaged(file *safetensors.File) error {
	digest := sha256.New()
	for _, t := range file.Tensors() {
		numbers, _, err := safetensors.View[float32](file, t.Name)
		if err != nil {
			return err
		}
		digest.Write(bytesOf(numbers))
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != file.Metadata()[digestName] {
		return errors.New("its numbers are not those that were written: the file is damaged")
	}
	return nil
}
