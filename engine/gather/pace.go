package gather

import "sync"

// A pace says how many of the rows that steps read come for the first time. It looks at the last
// ones: those that were read since there were half as many, or somewhat fewer. A run that reads
// the same rows again and again thus shows soon that few more will come.
type pace struct {
	mu     sync.Mutex
	now    reading
	marks  [2]reading // the last two times that twice as many had been read; the later one first
	epochs int
}

// A reading is how many rows had been read, and how many of those that are to be kept had come.
type reading struct{ read, came int64 }

// note counts rows that were read, of which so many are here by now.
func (p *pace) note(read int, came int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = reading{p.now.read + int64(read), came}
	if p.now.read >= 2*p.marks[0].read {
		p.marks = [2]reading{p.now, p.marks[0]}
	}
}

// begin notes the begin of an epoch, and returns how many new rows so many epochs would read if new
// ones went on to come as they did lately. Before the first has ended nothing is known.
func (p *pace) begin(epochs int) (rows float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epochs > 0 {
		since := p.marks[0]
		if 2*since.read > p.now.read {
			since = p.marks[1]
		}
		if read := p.now.read - since.read; read > 0 {
			each := float64(p.now.read) / float64(p.epochs)
			rows = float64(p.now.came-since.came) / float64(read) * each * float64(epochs)
		}
	} else { // a run that goes on within an epoch has read part of it
		p.now.read, p.marks = 0, [2]reading{{came: p.now.came}, {came: p.now.came}}
	}
	p.epochs++
	return rows
}

// clear forgets all readings.
func (p *pace) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.marks, p.epochs = reading{}, [2]reading{}, 0
}
