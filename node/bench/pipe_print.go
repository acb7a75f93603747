package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// detailsOfPipe prints what figures of pipe are made of.
func detailsOfPipe(out io.Writer, r Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Volumes) > 0 {
		_, _ = fmt.Fprintf(w, "\nBY FORMULA, %d NODES\tMODEL\tALPHA\tGRAPH: ROWS\tSUMS\tPIPE: ROWS\tROWS OVER ROWS\tAS AUTHORS COUNT\tOUR MODELS\t\n", publishedNodes)
	}
	for _, v := range r.Volumes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%.2f\t%.3f GiB\t%.3f GiB\t%.3f GiB\t%.2fx\t%.2fx\t%.2fx\t\n", v.Graph, v.Model, v.Alpha,
			gib(v.Halo), gib(v.Sums), gib(v.Pipe), v.Rows, v.Counted, v.Ours)
	}
	if len(r.Moved) > 0 {
		_, _ = fmt.Fprintln(w, "\nCOUNTED, AN EPOCH\tMODEL\tNODES\tSTRATEGY\tALPHA\tROWS\tBY FORMULA\tGRADIENTS\tBY FORMULA\tOVER GRAPH\tL ALPHA / ((S-1) N_B)\t")
	}
	for _, m := range r.Moved {
		over, by := "", ""
		if m.Ratio > 0 {
			over = fmt.Sprintf("%.2fx less", m.Ratio)
		}
		if m.RatioBy > 0 {
			by = fmt.Sprintf("%.2fx", m.RatioBy)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.2f\t%d\t%d\t%d\t%d\t%s\t%s\t\n", m.Graph, m.Model, m.Nodes, m.Strategy, m.Alpha, m.Rows, m.RowsBy, m.Sums, m.SumsBy, over, by)
	}
	if len(r.Piped) > 0 {
		_, _ = fmt.Fprintln(w, "\nTIMED, AN EPOCH\tMODEL\tNODES\tSTRATEGY\tALPHA\tRATE\tSECONDS\tPREDICTED\tWAITING\tBUBBLE\tROWS\tGRADIENTS\tOVER GRAPH\tPUBLISHED\t")
	}
	for _, p := range r.Piped {
		over, authors, name := "", "", p.Strategy
		if p.Chosen {
			name += ", chosen"
		}
		if p.Ratio > 0 {
			over = fmt.Sprintf("%.2fx faster", p.Ratio)
			if p.Ratio < 1 {
				over = fmt.Sprintf("%.2fx, SLOWER", p.Ratio)
			}
		}
		if p.Authors > 0 {
			authors = fmt.Sprintf("%.2fx", p.Authors)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.2f\t%s\t%.2f s\t%.2f s\t%.0f %%\t%.0f %%\t%.1f MB\t%.1f MB\t%s\t%s\t\n", p.Graph, p.Model, p.Nodes, name, p.Alpha, rateOf(p.Rate),
			p.Seconds, p.Predicted, 100*p.Waiting, 100*p.Bubble, float64(p.Rows)/1e6, float64(p.Sums)/1e6, over, authors)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Piped) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(out)
	for _, g := range deepGraphs {
		_, err := fmt.Fprintf(out, "%s is made up, with %d of its %d vertices (%.3g of it), %d of its %d features, hidden rows of %d for %d, %d classes for %d.\n",
			g.name, g.like.vertices, g.vertices, g.scale(), g.width, g.features, deepHidden, g.hidden, g.like.classes, g.classes)
		if err != nil {
			return err
		}
	}
	return nil
}

// gib is bytes in GiB.
func gib(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
