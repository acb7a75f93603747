//go:build page

package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a daemon in a process of its own.
type process struct {
	name, dir, listen, api string
	program                string
	cmd                    *exec.Cmd
	log                    *os.File
}

// program returns the binary under test.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("HOPMESH")
	if path == "" {
		t.Fatal("HOPMESH does not name the program: use make test-page")
	}
	return path
}

// free returns addresses on loopback that nobody uses.
func free(t *testing.T) (udp, tcp string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.LocalAddr().String(), l.Addr().String()
}

// newProcess prepares a daemon. It is killed when the test ends.
func newProcess(t *testing.T, root, name string) *process {
	t.Helper()
	p := &process{name: name, dir: filepath.Join(root, name), program: program(t)}
	p.listen, p.api = free(t)
	var err error
	if p.log, err = os.Create(filepath.Join(root, name+".log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		_ = p.log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(p.log.Name())
			t.Logf("the log of %s ends:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
	return p
}

// start starts the daemon, and waits until it is ready.
func (p *process) start(t *testing.T, args ...string) {
	t.Helper()
	p.cmd = exec.Command(p.program, append([]string{
		"agent", "--data-dir", p.dir, "--name", p.name, "--listen", p.listen, "--api", p.api, "--memory", "512MB", "--device", "cpu",
	}, args...)...)
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // the browser needs processors, too
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, p.name+" is ready", func() bool {
		return exec.Command(p.program, "status", "--addr", p.socket()).Run() == nil
	})
}

// end sends the process a signal, and waits for its end.
func (p *process) end(signal syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal)
	_ = p.cmd.Wait()
	p.cmd = nil
}

func (p *process) socket() string { return "unix:" + filepath.Join(p.dir, "hopmesh.sock") }

// do runs a command on the daemon, and decodes what it prints.
func (p *process) do(t *testing.T, out any, args ...string) {
	t.Helper()
	cmd := exec.Command(p.program, append(args, "--addr", p.socket(), "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatalf("hopmesh %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
}

// train starts a job, and returns its id.
func (p *process) train(t *testing.T, args ...string) string {
	t.Helper()
	var job struct {
		ID string `json:"id"`
	}
	p.do(t, &job, append([]string{"train", "start", "--dataset", "papers"}, args...)...)
	return job.ID
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not after 90 seconds", what)
		}
	}
}

// upMesh starts three nodes.
func upMesh(t *testing.T) [3]*process {
	t.Helper()
	root, err := os.MkdirTemp("", "hm") //nolint:usetesting // its path would be too long for unix sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	var nodes [3]*process
	for i, name := range []string{"alpha", "beta", "gamma"} {
		nodes[i] = newProcess(t, root, name)
	}
	nodes[0].start(t, "--bootstrap")
	var token struct {
		Token string `json:"token"`
	}
	nodes[0].do(t, &token, "token", "create")
	for _, n := range nodes[1:] {
		n.start(t, "--join", nodes[0].listen, "--token", token.Token)
	}
	return nodes
}

func (p *process) String() string { return fmt.Sprintf("node %s", p.name) }
