package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// frameworks lists the ways to train that peers.py supports.
var frameworks = []string{"pyg", "pyg-csr", "dgl"}

// patience is how long an answer may take, far more than any should need.
const patience = 10 * limit

// python is the child process that trains with the other frameworks.
type python struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	failed error // the process ended or does not answer
}

func newPython(ctx context.Context, program, script string, threads int) (*python, error) {
	cmd := exec.CommandContext(ctx, program, script, strconv.Itoa(threads))
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "PYTHONWARNINGS=ignore", "DGLBACKEND=pytorch")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Python: %w", err)
	}
	return &python{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

func (p *python) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// answer is an answer of peers.py. Each question fills its own fields.
type answer struct {
	Error   string    `json:"error"`
	Seconds []float64 `json:"seconds"`
	Steps   []int     `json:"steps"`
	Test    float64   `json:"test"`
}

func (p *python) ask(question map[string]any) (answer, error) {
	var a answer
	if p.failed != nil {
		return a, p.failed
	}
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() }) // this also ends the reading
	line, err := p.exchange(question)
	if !late.Stop() {
		err = fmt.Errorf("no answer within %v", patience)
	}
	if err != nil {
		p.failed = fmt.Errorf("ask Python to %v: %w", question["do"], err)
		return a, p.failed
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("read the answer %q of Python: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func (p *python) exchange(question map[string]any) ([]byte, error) {
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		return nil, err
	}
	return p.out.ReadBytes('\n')
}

// build makes a framework's model of a task.
func (p *python) build(who string, t task) error {
	input := t.dropout
	fanouts := t.fanouts
	if fanouts == nil {
		fanouts = []int{}
	}
	_, err := p.ask(map[string]any{"do": "build", "case": map[string]any{
		"who": who, "model": t.model, "layers": t.layers, "hidden": t.hidden, "dropout": t.dropout, "input_dropout": input, "lr": t.rate,
		"weight_decay": t.decay, "batch": t.batch, "fanouts": fanouts, "seed": 1, "workers": 0,
	}})
	return err
}
