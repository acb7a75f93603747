package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// details prints what figures of strategies are made of.
func details(out io.Writer, r Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Sent) > 0 {
		_, _ = fmt.Fprintln(w, "\nAN EPOCH SENDS\tWIDTH\tFAN-OUT\tBATCH\tSTRATEGY\tSTEPS\tREQUESTS\tROWS\tLOCAL\tFEATURES\tGRADIENTS\t")
		for _, s := range r.Sent {
			_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%d\t%d\t%d\t%.0f %%\t%.1f MB\t%.1f MB\t\n", s.Graph, s.Width, load{fanouts: s.Fanout}.hops(), s.Batch, s.Strategy,
				s.Steps, s.Requests.Feature, s.Rows.Remote, 100*float64(s.Rows.Local)/float64(s.Rows.Local+s.Rows.Remote), float64(s.Bytes.Feature)/1e6, float64(s.Bytes.Gradient)/1e6)
		}
	}
	if len(r.Ladder) > 0 {
		_, _ = fmt.Fprintln(w, "\nTHE LADDER, A STEP\tSLOTS\tREQUESTS\tROWS\tLOCAL\tFEATURES\tMODELS\tEPOCH\t")
		for _, g := range r.Ladder {
			_, _ = fmt.Fprintf(w, "%s\t%d\t%.1f\t%.0f\t%.0f %%\t%.2f MB\t%.2f MB\t%.2f s\t\n", g.Name, g.Slots, g.Requests, g.Remote, 100*g.LocalShare, g.Feature/1e6, g.Model/1e6, g.Seconds)
		}
	}
	if len(r.Columns) > 0 {
		_, _ = fmt.Fprintln(w, "\nTHE LADDER OF P3, A STEP\tFEATURES\tEDGES\tACTIVATIONS\tMODELS\tGRADIENTS\tUPDATES BEHIND\tEPOCH\t")
		for _, g := range r.Columns {
			_, _ = fmt.Fprintf(w, "%s\t%.2f MB\t%.2f MB\t%.2f MB\t%.2f MB\t%.2f MB\t%d\t%.2f s\t\n", g.Name, g.Feature/1e6, g.Topology/1e6, g.Activation/1e6, g.Model/1e6, g.Gradient/1e6, g.Behind, g.Seconds)
		}
	}
	if len(r.Times) > 0 {
		_, _ = fmt.Fprintln(w, "\nAN EPOCH TAKES\tWIDTH\tHIDDEN\tSTRATEGY\tSECONDS\tFETCHING\t")
		for _, t := range r.Times {
			seconds, fetching := fmt.Sprintf("%.2f s", t.Seconds), ""
			if t.Refused != "" {
				seconds = "refused"
			}
			if t.Strategy == "centric" {
				fetching = fmt.Sprintf("%.0f %%", 100*t.Fetching)
			}
			_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t\n", t.Model, t.Width, t.Hidden, t.Strategy, seconds, fetching)
		}
	}
	isolatedDetails(w, r)
	if err := w.Flush(); err != nil {
		return err
	}
	said := map[string]bool{}
	for _, t := range r.Times {
		if t.Refused != "" && !said[t.Refused] {
			said[t.Refused] = true
			_, _ = fmt.Fprintf(out, "\n%s with %s is refused: %s.\n", t.Model, t.Strategy, t.Refused)
		}
	}
	return detailsOfPipe(out, r)
}
