package api

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A RunRequest has a script run beside nodes.
type RunRequest struct {
	// Nodes is how many; 0: all.
	Nodes int `json:"nodes,omitempty"`
	// Name is that of the script's file.
	Name   string   `json:"name,omitempty"`
	Script string   `json:"script"`
	Args   []string `json:"args,omitempty"`
	// Run is the word by which the script finds its job. With that of a run that was cut off, its
	// job goes on from the last checkpoint. Default: a new one.
	Run string `json:"run,omitempty"`
}

// RunDone says which run it was, and beside which nodes it began.
type RunDone struct {
	Run   string   `json:"run"`
	Nodes []string `json:"nodes"`
}

// A RunEvent is one line of the answer to a request. A line with Done or Error is the last; one
// without anything keeps the connection alive.
type RunEvent struct {
	Started *RunDone `json:"started,omitempty"`
	Node    string   `json:"node,omitempty"`
	// Line is one that the script beside the node has printed.
	Line *string `json:"line,omitempty"`
	// Note is what has become of the script beside the node.
	Note  string     `json:"note,omitempty"`
	Done  *RunDone   `json:"done,omitempty"`
	Error *ErrorBody `json:"error,omitempty"`
}

func (RunEvent) lasting() bool               { return false }
func (RunEvent) failed(b ErrorBody) RunEvent { return RunEvent{Error: &b} }
func (e RunEvent) ends() (bool, *ErrorBody)  { return e.Done != nil, e.Error }
func (e RunEvent) tells() bool               { return e.Started != nil || e.Node != "" }

// What a script and its arguments may have. Each node is sent them in one call.
const (
	maxScript = 256 << 10
	maxArgs   = 64 << 10
)

var (
	runWord = regexp.MustCompile(`^[A-Za-z0-9-]{1,56}$`)
	// numbered is how the jobs of a run's second loader and later ones are called.
	numbered = regexp.MustCompile(`--[0-9]+$`)
)

// CheckScript returns an error if no node would run a script with these arguments.
func CheckScript(script string, args []string) error {
	size := 0
	for _, a := range args {
		size += len(a) + 1
		if strings.ContainsRune(a, 0) || !utf8.ValidString(a) {
			return Invalid("an argument of the script, %.40q, is no text: leave it out", a)
		}
	}
	switch {
	case script == "":
		return Invalid("the script is empty: give a Python file")
	case len(script) > maxScript:
		return Invalid("the script has %d bytes, and %d is the most: install what it imports on every node", len(script), maxScript)
	case !utf8.ValidString(script):
		return Invalid("the script is no text in UTF-8: give a Python file")
	case size > maxArgs:
		return Invalid("the script's arguments take %d bytes, and %d is the most: put them into a file", size, maxArgs)
	}
	return nil
}

// Check returns an error if no node would accept the request.
func (r RunRequest) Check() error {
	switch {
	case r.Nodes < 0 || r.Nodes > maxForecastNodes:
		return Invalid("the script is to run beside %d nodes: give 1 or more, or 0 for all", r.Nodes)
	case r.Run != "" && (r.Run == "none" || !runWord.MatchString(r.Run)):
		return Invalid("%.80q names no run: give up to 56 letters, digits and dashes", r.Run)
	case numbered.MatchString(r.Run):
		return Invalid("%.80q names no run: it ends in two dashes and a number, as the jobs of a run's second and later loaders do; leave out a dash", r.Run)
	}
	return CheckScript(r.Script, r.Args)
}
