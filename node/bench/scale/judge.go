package scale

import (
	"fmt"
	"math"
	"slices"
)

// Measured is what was seen of a cell. Memory is RssAnon + RssShmem of each daemon.
type Measured struct {
	// Bound is the value of --memory in bytes, or 0 if the daemons ran without it.
	Bound uint64 `json:"bound,omitempty"`
	// Idle holds the memory use of each daemon before the job, in bytes.
	Idle []uint64 `json:"idle"`
	// Peak holds the highest memory use of each daemon during the job, in bytes.
	Peak []uint64 `json:"peak"`
	// Later holds the memory use of each daemon at another time than Peak, in bytes. Some cells measure
	// it a minute after the job, some during the last of many jobs, and some during a prediction.
	Later    []uint64 `json:"later,omitempty"`
	Forecast []uint64 `json:"forecast,omitempty"` // by node, before the first step; 0: it said nothing
	Fell     []string `json:"fell_back,omitempty"`
	Refused  string   `json:"refused,omitempty"` // the sentence that refused the job
	Failed   string   `json:"failed,omitempty"`  // how else the job or a daemon ended
	Seconds  float64  `json:"seconds"`           // until the job's end

	Graph     string  `json:"graph,omitempty"` // what it is like
	Job       string  `json:"job,omitempty"`
	Trained   float64 `json:"trained,omitempty"`   // seconds of the last epoch
	Evaluated float64 `json:"evaluated,omitempty"` // seconds
	// Predicted is how many seconds the prediction took, or, where a daemon was killed, the rest of the
	// job from that daemon's restart on.
	Predicted float64 `json:"predicted,omitempty"`
	// Worked is the processor time of the prediction, in seconds.
	Worked float64 `json:"worked,omitempty"`
	// Products is the processor time of the same matrix products by themselves, in seconds.
	Products float64 `json:"products,omitempty"`
	// Events says when a daemon was killed, and how the job went on.
	Events string `json:"events,omitempty"`
}

// Verdicts of a bar.
const (
	holds  = "ok"
	missed = "MISSED"
)

// A Line is a cell beside a bar.
type Line struct {
	Part     string `json:"part"`
	Cell     string `json:"cell"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	Verdict  string `json:"verdict"`
	Remark   string `json:"remark,omitempty"`
	Version  string `json:"version,omitempty"` // that measured it
}

func verdict(ok bool) string {
	if ok {
		return holds
	}
	return missed
}

// rose is by how much the worst daemon rose above its own idle memory.
func (m Measured) rose() uint64 { return above(m.Peak, m.Idle) }

func above(high, low []uint64) (most uint64) {
	for i := range high {
		if i < len(low) && high[i] > low[i] {
			most = max(most, high[i]-low[i])
		}
	}
	return most
}

func largest(list []uint64) uint64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

// judgeBound says whether a job kept to its bound: its peak, or that it was refused
// before it took anything.
func judgeBound(m Measured) (l Line) {
	l.Bar = fmt.Sprintf("peak at most %.2fx of %s", overBound, size(m.Bound))
	peak, idle := largest(m.Peak), largest(m.Idle)
	switch {
	case m.Refused != "":
		l.Bar = "refused, rises by at most " + size(rise)
		l.Measured = "refused, rose by " + size(m.rose())
		l.Verdict, l.Remark = verdict(m.rose() <= rise), m.Refused
		if idle > m.Bound {
			l.Measured = fmt.Sprintf("refused, below idle (%s), rose by %s", size(idle), size(m.rose()))
		}
	case m.Failed != "":
		l.Measured, l.Verdict, l.Remark = "failed at "+size(peak), missed, m.Failed
	default:
		l.Measured = fmt.Sprintf("peak %s, %.2fx", size(peak), float64(peak)/float64(m.Bound))
		l.Verdict = verdict(float64(peak) <= overBound*float64(m.Bound))
	}
	if m.Bound == 0 && m.Refused == "" && m.Failed == "" {
		l.Bar, l.Measured, l.Verdict = "", fmt.Sprintf("needs %s, idle %s", size(peak), size(idle)), ""
	}
	return l
}

// judgeForecast compares what each node said that it would take with its peak, and
// returns the ratio that is farthest from 1. A job that was not trained has none.
func judgeForecast(m Measured) (l Line, ok bool) {
	if m.Refused != "" || m.Failed != "" {
		return l, false
	}
	l.Bar = fmt.Sprintf("forecast %.2fx to %.2fx of the peak", forecastLow, forecastHigh)
	worst, at := 1.0, -1
	for i, f := range m.Forecast {
		if f == 0 || m.Peak[i] == 0 {
			continue
		}
		r := float64(f) / float64(m.Peak[i])
		if at < 0 || math.Abs(math.Log(r)) > math.Abs(math.Log(worst)) {
			worst, at = r, i
		}
	}
	if at < 0 {
		l.Measured, l.Verdict = "no forecast", missed
		return l, true
	}
	l.Measured = fmt.Sprintf("%s for %s, %.2fx", size(m.Forecast[at]), size(m.Peak[at]), worst)
	l.Verdict = verdict(worst >= forecastLow && worst <= forecastHigh)
	return l, true
}

// judgeFall compares what the worst of several nodes took above idle with what one did.
// bar 0 asks for nothing.
func judgeFall(one, many Measured, bar float64) (l Line) {
	if bar > 0 {
		l.Bar = fmt.Sprintf("at most %.2fx", bar)
	}
	for _, m := range []Measured{one, many} {
		if m.Refused+m.Failed != "" {
			l.Measured, l.Verdict, l.Remark = "not trained", missed, m.Refused+m.Failed
			return l
		}
	}
	ratio := float64(many.rose()) / float64(max(1, one.rose()))
	l.Measured = fmt.Sprintf("%s of %s, %.2fx", size(many.rose()), size(one.rose()), ratio)
	if bar > 0 {
		l.Verdict = verdict(ratio <= bar)
	}
	return l
}

// judgeLater says whether memory was given back a minute after a job.
func judgeLater(m Measured) (l Line) {
	l.Bar = "a minute later at most " + size(rise) + " more"
	if m.Refused+m.Failed != "" {
		l.Measured, l.Verdict, l.Remark = "not trained", missed, m.Refused+m.Failed
		return l
	}
	more := above(m.Later, m.Idle)
	l.Measured = fmt.Sprintf("%s more; the job took %s", size(more), size(m.rose()))
	l.Verdict = verdict(more <= rise)
	return l
}

// judgeRepeat compares the hundredth job with the first.
func judgeRepeat(m Measured) (l Line) {
	l.Bar = fmt.Sprintf("the hundredth job at most %.2fx of the first", again)
	if m.Refused+m.Failed != "" {
		l.Measured, l.Verdict, l.Remark = "not trained", missed, m.Refused+m.Failed
		return l
	}
	ratio := float64(largest(m.Later)) / float64(max(1, largest(m.Peak)))
	l.Measured = fmt.Sprintf("%s after %s, %.2fx", size(largest(m.Later)), size(largest(m.Peak)), ratio)
	l.Verdict = verdict(ratio <= again)
	return l
}

// judgeAnswer says whether a job that can't fit was refused soon.
func judgeAnswer(m Measured) (l Line) {
	l.Bar = fmt.Sprintf("refused within %.0f s, rises by at most %s", answer, size(rise))
	l.Measured = fmt.Sprintf("%.1f s, rose by %s", m.Seconds, size(m.rose()))
	if l.Remark = m.Refused; m.Refused == "" {
		l.Measured, l.Remark = "not refused: "+l.Measured, m.Failed
	}
	l.Verdict = verdict(m.Refused != "" && m.Seconds <= answer && m.rose() <= rise)
	return l
}

// judgeStep says whether what a large graph needs was done within the bound.
func judgeStep(m Measured, what string, peak []uint64, seconds float64) (l Line) {
	l.Bar = fmt.Sprintf("done, peak at most %.2fx of %s", overBound, size(m.Bound))
	l.Measured = fmt.Sprintf("%s: peak %s, %.2fx, %.0f s", what, size(largest(peak)), float64(largest(peak))/float64(max(1, m.Bound)), seconds)
	l.Verdict = verdict(len(peak) > 0 && m.Refused == "" && m.Failed == "" && float64(largest(peak)) <= overBound*float64(m.Bound))
	l.Remark = m.Refused + m.Failed
	return l
}

// judgeTime says whether all of the large graph was done in time.
func judgeTime(seconds float64) Line {
	return Line{
		Bar: fmt.Sprintf("at most %.0f minutes on two cores", papersTime.Minutes()), Measured: fmt.Sprintf("%.0f minutes", seconds/60),
		Verdict: verdict(seconds <= papersTime.Seconds()),
	}
}

// judgeLimit says whether a job under a real limit was trained or refused.
func judgeLimit(m Measured) (l Line) {
	l.Bar = fmt.Sprintf("trained within %.1fx of %s, or refused; no daemon ends", overLimit, size(m.Bound))
	switch {
	case m.Failed != "":
		l.Measured, l.Verdict, l.Remark = "failed", missed, m.Failed
	case m.Refused != "":
		l.Measured, l.Verdict, l.Remark = "refused, rose by "+size(m.rose()), holds, m.Refused
	default:
		l.Measured = "trained, peak " + size(largest(m.Peak))
		l.Verdict = verdict(float64(largest(m.Peak)) <= overLimit*float64(m.Bound))
	}
	return l
}
