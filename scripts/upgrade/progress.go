package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// progress follows how far a job has come, as a node says that shares it and is not stopped.
type progress struct {
	on   *node
	job  string
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	read  int // bytes of the node's log
	steps int // of an epoch; 0: not known yet
	made  int // steps of all epochs
	begun int // how often the node has begun or gone on with the job
	lost  int // steps that were made again
}

// follow begins to follow a job.
func follow(ctx context.Context, on *node, job string) *progress {
	ctx, stop := context.WithCancel(ctx)
	p := &progress{on: on, job: job, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			p.look(ctx)
			select {
			case <-time.After(look):
			case <-ctx.Done():
			}
		}
	}()
	return p
}

func (p *progress) look(ctx context.Context) {
	text := p.on.log.String()
	text = text[p.read : strings.LastIndexByte(text, '\n')+1]
	j, err := p.on.Job(ctx, p.job)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += len(text)
	for _, at := range resumptions(text, p.job) {
		p.begun++
		p.lost += max(0, p.made-at[0]*p.steps-at[1])
	}
	if err == nil && j.Steps > 0 && j.State == "running" {
		p.steps, p.made = j.Steps, max(p.made, (j.Epoch-1)*j.Steps+j.Step)
	}
}

// now returns how many steps were made, how often the node has gone on, and how many steps were made
// again by then.
func (p *progress) now() (made, begun, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made, p.begun, p.lost
}

func (p *progress) end() {
	p.stop()
	<-p.done
}

// goesOn waits until the node has gone on with the job more often than that, and has made a step
// since.
func (p *progress) goesOn(ctx context.Context, than int) error {
	from := -1
	return until(ctx, fmt.Sprintf("job %s goes on", p.job), func() (bool, error) {
		made, begun, _ := p.now()
		if begun > than && from < 0 {
			from = made
		}
		return from >= 0 && made > from, nil
	})
}

// begins are the lines by which a node says where it goes on with a job.
var begins = regexp.MustCompile(`msg="will train".* job=(\S+) .*resumed=(\d+) step=(\d+)`)

// resumptions returns where a node has gone on with a job, as its log says: epochs that were done,
// and steps of the next.
func resumptions(log, job string) (list [][2]int) {
	for line := range strings.Lines(log) {
		if found := begins.FindStringSubmatch(line); found != nil && found[1] == job {
			epochs, _ := strconv.Atoi(found[2])
			steps, _ := strconv.Atoi(found[3])
			list = append(list, [2]int{epochs, steps})
		}
	}
	return list
}
