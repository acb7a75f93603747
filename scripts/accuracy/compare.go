package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"text/tabwriter"

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// apart is how far a mean on several nodes may be from that on one, in points.
const apart = 0.3

var errApart = errors.New("a mean on several nodes is more than 0.3 points from that on one")

// compare prints the means of the seeds that were trained on one node and on several.
func (t task) compare(list []row, k *runs.Kept) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "GRAPH\tMODEL\tSEEDS\tONE NODE\t%d NODES\tAPART\t\n", t.nodes)
	var far error
	for _, r := range list {
		alone, err := k.Of(r.on(0))
		if err != nil {
			return err
		}
		shared, err := k.Of(r.on(t.nodes))
		if err != nil {
			return err
		}
		var one, many []float64
		for _, a := range alone.Runs {
			for _, b := range shared.Runs {
				if a.Seed == b.Seed {
					one, many = append(one, a.Test), append(many, b.Test)
				}
			}
		}
		if len(one) == 0 {
			continue
		}
		mean, deviation := runs.Spread(one)
		meanToo, deviationToo := runs.Spread(many)
		verdict := "holds"
		if math.Abs(mean-meanToo) > apart {
			verdict, far = "APART", errApart
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d of %d\t%.2f ± %.2f\t%.2f ± %.2f\t%+.2f\t%s\n", r.graph, r.name, len(one), r.seeds, mean, deviation, meanToo, deviationToo, meanToo-mean, verdict)
	}
	return errors.Join(far, w.Flush())
}
