package mesh

import "time"

// A node that stops says so when it ends its connections. Its peers need not wait until gossip
// finds it dead: to them it has failed from then on. A node can say that only of itself, and not
// again and again. What package gone finds counts like its word.

// partedFor bounds how long a node's word counts if gossip goes on to find it alive and no
// connection to it comes about. Gossip finds the dead earlier. Another word counts after that.
const partedFor = 10 * time.Second

// A word is what a connection says of the node at its other end.
type word struct {
	id    string
	parts bool      // it stops; else it is there
	over  time.Time // when it parted, if that has lasted long enough
}

// tell passes on a word to watchMembers.
func (t *members) tell(w word) {
	select {
	case t.words <- w:
	case <-t.stop:
	}
}

// parts is called when a node has ended a connection with a goodbye.
func (p *pool) parts(l *link) {
	p.mu.Lock()
	for other := range p.all {
		if other.peer == l.peer && other.alive() && other.born.After(l.born) {
			p.mu.Unlock()
			return // it was that of the process before
		}
	}
	p.mu.Unlock()
	p.mesh.members.tell(word{id: l.peer, parts: true})
}

// returned is called when a connection to a node has come about.
func (t *members) returned(id string) {
	t.mu.RLock()
	_, parted := t.parted[id]
	t.mu.RUnlock()
	if parted {
		t.tell(word{id: id})
	}
}

// A parting is when a node stopped by its own word, and the end of its validity.
type parting struct {
	at    time.Time
	timer *time.Timer
}

// take returns what changes by a word, if anything does.
func (t *members) take(w word) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.byID[w.id]
	was, parted := t.parted[w.id]
	now := time.Now()
	switch {
	case !known, n.Status != Alive, parted == w.parts, !w.over.IsZero() && was.at != w.over:
		return Change{}, false
	case w.parts && now.Sub(t.heeded[w.id]) < partedFor:
		return Change{}, false // gossip finds out
	case w.parts:
		t.heeded[w.id] = now
		t.parted[w.id] = parting{now, time.AfterFunc(partedFor, func() { t.tell(word{id: w.id, over: now}) })}
	default:
		t.settle(w.id)
	}
	n.Since = now
	t.byID[w.id] = n
	return Change{ID: n.ID, Name: n.Name, Status: t.view(n).Status}, true
}

// settle forgets that a node has parted, since there is news of it, and reports whether it had.
// It is called with mu held.
func (t *members) settle(id string) bool {
	p, parted := t.parted[id]
	if parted {
		p.timer.Stop()
		delete(t.parted, id)
	}
	return parted
}

// view is a node as others should see it. It is called with mu held.
func (t *members) view(n Member) Member {
	if _, parted := t.parted[n.ID]; parted {
		n.Status = Failed
	}
	return n
}
