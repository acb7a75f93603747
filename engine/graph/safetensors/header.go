package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A place is a tensor and the range of its bytes, relative to the end of the header.
type place struct {
	Tensor
	begin, end int64
}

// parseHeader reads the JSON header of a file with dataSize bytes after it. The places
// are returned in file order and cover all bytes.
func parseHeader(header []byte, dataSize int64) ([]place, map[string]string, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("the header does not begin with {")
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.DisallowUnknownFields()
	if _, err := dec.Token(); err != nil {
		return nil, nil, notJSON(err)
	}
	var places []place
	var metadata map[string]string
	names := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, nil, notJSON(err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, nil, fmt.Errorf("the header has %v where a tensor's name belongs", token)
		}
		if names[name] {
			return nil, nil, fmt.Errorf("the header names %q twice", name)
		}
		names[name] = true
		if name == metadataKey {
			if err := dec.Decode(&metadata); err != nil {
				return nil, nil, notJSON(err)
			}
			continue
		}
		p, err := parsePlace(dec, name)
		if err != nil {
			return nil, nil, err
		}
		places = append(places, p)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the header goes on after its JSON")
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	at := int64(0)
	for _, p := range places {
		if p.begin != at {
			return nil, nil, fmt.Errorf("tensor %q starts at byte %d where %d was expected: tensors overlap, or leave a hole", p.Name, p.begin, at)
		}
		at = p.end
	}
	if at != dataSize {
		return nil, nil, fmt.Errorf("the header tells of %d bytes and the file holds %d", at, dataSize)
	}
	return places, metadata, nil
}

func notJSON(err error) error { return fmt.Errorf("the header is not the JSON expected: %w", err) }

// parsePlace reads the value that follows a tensor's name.
func parsePlace(dec *json.Decoder, name string) (place, error) {
	var entry struct {
		DType   DType   `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := dec.Decode(&entry); err != nil {
		return place{}, notJSON(err)
	}
	if entry.Shape == nil || len(entry.Offsets) != 2 {
		return place{}, fmt.Errorf("tensor %q lacks its shape or its two offsets", name)
	}
	p := place{
		Tensor: Tensor{Name: name, DType: entry.DType, Shape: entry.Shape},
		begin:  entry.Offsets[0], end: entry.Offsets[1],
	}
	n, err := p.bytes()
	if err != nil {
		return place{}, err
	}
	if p.begin < 0 || p.end < p.begin || p.end-p.begin != n {
		return place{}, fmt.Errorf("tensor %q lies in bytes %d to %d, but its shape takes %d", name, p.begin, p.end, n)
	}
	return p, nil
}
