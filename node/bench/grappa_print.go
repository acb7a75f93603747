package bench

import (
	"fmt"
	"io"
)

// isolatedDetails prints the cases of grappa, and what sweeping costs.
func isolatedDetails(w io.Writer, r Report) {
	if len(r.Isolated) > 0 {
		_, _ = fmt.Fprintln(w, "\nGRAPPA, AN EPOCH\tLAYERS\tWIDTH\tHIDDEN\tFAN-OUT\tCENTRIC\tGRAPPA\tFASTER\tFETCHING\tCEILING\tA STEP SENDS\tFORMULA\tEDGES SEEN\t")
		for i := range r.Isolated {
			c := &r.Isolated[i]
			_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%.2f s\t%.2f s\t%.2fx\t%.0f %%\t%.2fx\t%.0f B\t%d B\t%.0f %%\t\n", c.Model, c.Layers, c.Width, c.Hidden, load{fanouts: c.Fanout}.hops(),
				c.Centric, c.Grappa, c.faster(), 100*c.Fetching, c.Ceiling, c.Gradient, c.Formula, 100*c.Seen)
		}
	}
	if len(r.Turned) > 0 {
		_, _ = fmt.Fprintln(w, "\nGRAPPA SWEEPS\tMODEL\tEPOCHS\tSWEEPING\tWITHOUT\tADDS\tROWS\tAN EPOCH\tWAITS AT THE SWITCH\tTHE SWITCH BRINGS\t")
		for i := range r.Turned {
			t := &r.Turned[i]
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%.1f s\t%.1f s\t%.1f %%\t%.2fx\t%.2f s\t%.2f s\t%.1f MB\t\n", t.Dataset, t.Load, t.Epochs, t.Swept, t.Still, 100*t.adds(), t.Rows, t.Steady, t.Wait, float64(t.Bytes)/1e6)
		}
	}
}
