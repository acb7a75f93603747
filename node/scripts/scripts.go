// Package scripts runs a script of a user beside each node of a mesh: the daemon that is asked
// has every node start it, passes its output on, and ends all of them when one fails. Each node
// starts its script again where the job goes on from a checkpoint.
//
// A node runs scripts only if its user has said by which program, since a script may do whatever
// that user may. Nodes on loopback do without that: whoever reaches them is on their machine.
package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/mesh"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/lead"
	"github.com/hopmesh/hopmesh/node/ongoing"
)

// The calls between nodes.
const (
	callStart = "script-start"
	callLook  = "script-look"
	callEnd   = "script-end"
)

const (
	// lease is how long a script runs without anybody who asks for its output.
	lease = 15 * time.Second
	// renewal is how often whoever asks says so, though the output of before is not read yet.
	renewal = lease / 3
	// glance is how long an answer waits for output.
	glance = 2 * time.Second
	// pause is how long a node waits before it starts a script again, and before it asks a node
	// again that has not answered.
	pause = 500 * time.Millisecond
	// longest bounds the wait before a script starts again, which doubles until one has run for as
	// long as steady: it might ask for that for ever.
	longest = 30 * time.Second
	steady  = time.Minute
)

// Mesh is what scripts need of the mesh.
type Mesh interface {
	ID() string
	Call(ctx context.Context, peer, method string, body []byte) ([]byte, error)
	Handle(method string, h mesh.CallHandler)
}

// A Node is one that lives.
type Node struct{ ID, Name string }

// A Job is one whose steps programs compute. Run is the word by which they find it.
type Job struct {
	ID, Run    string
	Over, Done bool // it has ended, and well
}

// Launch runs a command in a folder until it ends, and returns its exit code. When ctx ends it
// ends the command with all that it has started.
type Launch func(ctx context.Context, folder string, command, environment []string, output *Lines) (code int, err error)

// Config is what New needs. Its functions may be called from any goroutine.
type Config struct {
	Mesh Mesh
	// Python is the program that scripts are run by; "": this node runs none.
	Python string
	// Socket is the address of this node's API, which scripts connect to.
	Socket string
	// Dir is where scripts lie while they run.
	Dir string
	// Nodes lists the nodes that live, this one too, by their ids.
	Nodes func() []Node
	// Jobs lists the jobs of programs, as this node knows them.
	Jobs func() []Job
	// Stop stops a job.
	Stop func(ctx context.Context, id string) error
	// Launch replaces what runs commands, for tests in virtual time.
	Launch Launch
	Log    *slog.Logger
}

// Scripts runs scripts beside this node, and has others run them. Its methods may be called from
// any goroutine.
type Scripts struct {
	Config
	underWay ongoing.Group

	mu   sync.Mutex
	held map[string]*held // by the run's word
}

// New registers the calls by which other nodes have scripts run here.
func New(c Config) *Scripts {
	if c.Launch == nil {
		c.Launch = launch
	}
	// Scripts run in folders of their own, where other names of files would mean others.
	c.Dir = whole(c.Dir)
	if strings.ContainsRune(c.Python, filepath.Separator) {
		c.Python = whole(c.Python)
	}
	// What a node that was killed has left behind belongs to nobody.
	if err := os.RemoveAll(c.Dir); err != nil {
		c.Log.Warn("scripts of an earlier start could not be removed", "err", err)
	}
	s := &Scripts{Config: c, held: map[string]*held{}}
	c.Mesh.Handle(callStart, s.onStart)
	c.Mesh.Handle(callLook, s.onLook)
	c.Mesh.Handle(callEnd, s.onEnd)
	return s
}

// whole completes a name of a file.
func whole(name string) string {
	if w, err := filepath.Abs(name); err == nil && name != "" {
		return w
	}
	return name
}

// Run waits until ctx ends. Then it ends all scripts beside this node, and all runs that it was
// asked for.
func (s *Scripts) Run(ctx context.Context) error {
	return s.underWay.EndWith(ctx)
}

// ask makes a call on a node, or here.
func (s *Scripts) ask(ctx context.Context, node, method string, in any) (answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return answer{}, err
	}
	var text []byte
	if node == s.Mesh.ID() {
		here := map[string]mesh.CallHandler{callStart: s.onStart, callLook: s.onLook, callEnd: s.onEnd}
		text, err = here[method](ctx, node, body)
	} else {
		text, err = s.Mesh.Call(ctx, node, method, body)
	}
	if err != nil {
		return answer{}, err
	}
	return readAnswer(text)
}

// An answer is that of any call.
type answer struct {
	begun
	report
}

// readAnswer reads what another node answers.
func readAnswer(text []byte) (a answer, err error) {
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("the answer about a script can't be read: %w", err)
	}
	return a, nil
}

// A begin has a script started. Later means that the run goes on already.
type begin struct {
	Word   string   `json:"run"`
	Asker  string   `json:"asker"` // is drawn anew for each request of a user
	Name   string   `json:"name"`
	Script string   `json:"script"`
	Args   []string `json:"args,omitempty"`
	Rank   int      `json:"rank"`
	Size   int      `json:"size"`
	Later  bool     `json:"later,omitempty"`
}

// A begun answers begin. Apart means that the node does not know the job of the run yet, or runs the
// script for another request, so that nothing was started.
type begun struct {
	Apart bool `json:"apart,omitempty"`
}

// A look asks for output from a line on. The lines before it have arrived. It ends the script if
// that is asked for by callEnd. Keep asks for no output, but that the script runs on: nodes that do
// not know it answer with output that is asked for again later.
type look struct {
	Run   string `json:"run"`
	Asker string `json:"asker"`
	From  int    `json:"from"`
	Keep  bool   `json:"keep,omitempty"`
}

// A line is one of a script's output, or a note of its node.
type line struct {
	Text string `json:"text"`
	Note bool   `json:"note,omitempty"`
}

// A report answers look. Once all lines have been read, Over says that the script has ended.
type report struct {
	Lines []line `json:"lines,omitempty"`
	Over  bool   `json:"over,omitempty"`
	Code  int    `json:"code,omitempty"` // below 0: a signal
	Last  string `json:"last,omitempty"` // the last line that is not empty
}

var (
	words = regexp.MustCompile(`^[A-Za-z0-9-]{1,56}$`)
	names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
)

// maxRank bounds ranks and sizes of a run.
const maxRank = 1 << 16

// readBegin reads what another node sends.
func readBegin(body []byte) (b begin, err error) {
	if err := json.Unmarshal(body, &b); err != nil {
		return b, refused("a script was sent that can't be read: %v", err)
	}
	switch {
	case !words.MatchString(b.Word) || !words.MatchString(b.Asker):
		return b, refused("a run is named by up to 56 letters, digits and dashes")
	case !names.MatchString(b.Name):
		return b, refused("a script was sent whose name can't be that of a file")
	case b.Rank < 0 || b.Rank >= b.Size || b.Size > maxRank:
		return b, refused("a script has rank %d of %d", b.Rank, b.Size)
	}
	return b, api.CheckScript(b.Script, b.Args)
}

// readLook reads what another node sends.
func readLook(body []byte) (l look, err error) {
	if err := json.Unmarshal(body, &l); err != nil || l.From < 0 {
		return l, refused("a question about a script can't be read")
	}
	return l, nil
}

// taken is the reason for which a node refuses a request after another for the same run.
const taken = "script-taken"

func takenOver(run string) error {
	return mesh.Refuse(taken, "another request runs the script of %s", run)
}

func refused(format string, args ...any) error { return mesh.Refuse(lead.Conflict, format, args...) }
