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
)

// frameworks are the ways to train that peers.py knows.
var frameworks = []string{"pyg", "pyg-csr", "dgl"}

// python is the child process that trains with the others.
type python struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
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

// answer is what peers.py says; each question fills its own fields.
type answer struct {
	Error   string    `json:"error"`
	Seconds []float64 `json:"seconds"`
	Steps   []int     `json:"steps"`
	Test    float64   `json:"test"`
}

func (p *python) ask(question map[string]any) (answer, error) {
	var a answer
	if err := json.NewEncoder(p.in).Encode(question); err != nil {
		return a, fmt.Errorf("ask Python: %w", err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("Python ended without an answer: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("Python answered %q: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
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
