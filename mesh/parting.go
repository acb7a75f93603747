package mesh

import "time"

// A node that stops says so when it ends its connections. Its peers need not wait until gossip
// finds it dead: to them it has failed from then on. A node can say that only of itself.

// partedFor bounds how long a node's word counts if gossip goes on to find it alive and no
// connection to it comes about. Gossip finds the dead earlier.
const partedFor = 10 * time.Second

// A word is what a connection says of the node at its other end.
type word struct {
	id    string
	parts bool // it stops; else it is there
}

// tell passes on a word to watchMembers.
func (t *members) tell(w word) {
	select {
	case t.words <- w:
	case <-t.stop:
	}
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

// take returns what changes by a word, if anything does.
func (t *members) take(w word) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.byID[w.id]
	_, parted := t.parted[w.id]
	if !known || n.Status != Alive || parted == w.parts {
		return Change{}, false
	}
	if w.parts {
		t.parted[w.id] = time.AfterFunc(partedFor, func() { t.tell(word{id: w.id}) })
	} else {
		t.settle(w.id)
	}
	n.Since = time.Now()
	t.byID[w.id] = n
	return Change{ID: n.ID, Name: n.Name, Status: t.view(n).Status}, true
}

// settle forgets that a node has parted, since there is news of it, and reports whether it had.
// It is called with mu held.
func (t *members) settle(id string) bool {
	timer, parted := t.parted[id]
	if parted {
		timer.Stop()
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
