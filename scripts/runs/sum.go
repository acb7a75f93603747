package runs

import (
	"encoding/json"
	"fmt"
	"os"
)

// Sum is the mean of a row's finished runs, for other programs.
type Sum struct {
	Row       string  `json:"row"`
	Nodes     int     `json:"nodes,omitempty"` // that shared it; 0: one node alone
	Seeds     int     `json:"seeds"`
	Done      int     `json:"done"`
	Test      float64 `json:"test"` // percent
	Deviation float64 `json:"deviation"`
}

// Noise reports whether two means lie no further apart than chance takes them.
func (s Sum) Noise(o Sum) bool {
	return Noise(&Mean{Done: s.Done, Test: s.Test, Deviation: s.Deviation}, &Mean{Done: o.Done, Test: o.Test, Deviation: o.Deviation})
}

// WriteMeans writes the sums of rows into a file; "": there is to be none.
func (k *Kept) WriteMeans(file string, rows []Row) error {
	if file == "" {
		return nil
	}
	all := []Sum{}
	for _, r := range rows {
		m, err := k.Of(r)
		if err != nil {
			return err
		}
		all = append(all, Sum{Row: r.Name, Nodes: r.Nodes, Seeds: r.Seeds, Done: m.Done, Test: m.Test, Deviation: m.Deviation})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the means: %w", err)
	}
	return nil
}
