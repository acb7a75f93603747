package budget

import (
	"fmt"
	"strings"
)

// Short is the error of a run that lacks memory.
type Short struct {
	Cause      string // what needs how much, and what there is
	Needs, Has uint64 // in bytes
	Advice     []Advice
}

func (s *Short) Error() string {
	var b strings.Builder
	b.WriteString(s.Cause)
	for i, a := range s.Advice {
		switch {
		case i == 0:
			b.WriteString(": ")
		case i == len(s.Advice)-1:
			b.WriteString(", or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(a))
	}
	return b.String()
}

// Advice is one thing to do about too little memory. The keys of settings stand in braces:
// "take a smaller {batch} or {hidden}".
type Advice string

// What to do on a machine, rather than about a run.
const (
	AllowMore Advice = "allow more with {agent.memory}" // where that limits a run
	FreeSome  Advice = "free some"                      // where nothing does
)

// More returns how a node gets more memory, with a limit set for its runs or without.
func More(limited bool) Advice {
	if limited {
		return AllowMore
	}
	return FreeSome
}

// Format writes bytes as people read them.
func Format(bytes uint64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
