// Package attach speaks with a program that has attached to a job over the API's socket. A
// message is 4 bytes of length, little-endian, and so much JSON. Memory goes with a message
// as a file descriptor.
package attach

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/engine/desk"
	"github.com/hopmesh/hopmesh/node/wording"
)

const (
	// maxMessage bounds a message.
	maxMessage = 1 << 20
	// patience is how long a program may take to read an answer.
	patience = 30 * time.Second
)

// A Talk is an attached program's. It implements api.Attachment.
type Talk struct {
	program *desk.Program
	log     *slog.Logger
	given   []*desk.Memory // whose descriptors the program has
}

// New attaches a program to a desk.
func New(d *desk.Desk, log *slog.Logger) (*Talk, error) {
	p, err := d.Attach()
	if err != nil {
		return nil, err
	}
	return &Talk{program: p, log: log}, nil
}

// Program returns the attached program, for whoever asks without a connection.
func (t *Talk) Program() *desk.Program { return t.program }

// Leave ends the program's part, if Serve is not called.
func (t *Talk) Leave() { t.program.Leave() }

// Serve answers the program until its connection ends, which it closes.
func (t *Talk) Serve(conn *net.UnixConn) {
	questions := make(chan []byte)
	go func() {
		defer close(questions)
		defer t.program.Leave()
		from := bufio.NewReader(conn)
		for {
			m, err := read(from)
			if err != nil {
				return
			}
			select {
			case questions <- m:
			case <-t.program.Gone():
				return
			}
		}
	}()
	defer func() {
		t.program.Leave()
		_ = conn.Close() // ends the reading too
		for range questions {
		}
	}()
	if err := t.talk(conn, questions); err != nil {
		t.log.Info("a program has left", "why", err)
	}
}

func (t *Talk) talk(conn *net.UnixConn, questions <-chan []byte) error {
	for {
		var m []byte
		var more bool
		select {
		case m, more = <-questions:
			if !more {
				return nil
			}
		case <-t.program.Gone():
			return nil
		}
		q, err := desk.ParseQuestion(m)
		var a desk.Answer
		if err != nil {
			a = desk.Failed(err)
		} else if a, err = t.program.Ask(q); err != nil {
			return err
		}
		if err := t.answer(conn, a); err != nil || a.Last {
			return err
		}
	}
}

// read reads a message.
func read(from io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		// It is answered as what can't be parsed is.
		return fmt.Appendf(nil, "a message of %d bytes", n), nil
	}
	m := make([]byte, n)
	_, err := io.ReadFull(from, m)
	return m, err
}

// answer writes an answer, after memory that it needs.
func (t *Talk) answer(conn *net.UnixConn, a desk.Answer) error {
	if p, is := a.Body.(desk.Plain); is { // settings are named as users write them
		p.Why, p.Error = wording.Text(p.Why), wording.Text(p.Error)
		a.Body = p
	}
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for _, m := range a.Uses {
		err := t.give(conn, m)
		if errors.Is(err, desk.ErrClosed) {
			// The run has ended since, and the answer with it.
			return write(conn, desk.Again("the run has ended").Body, nil)
		}
		if err != nil {
			return err
		}
	}
	return write(conn, a.Body, nil)
}

// given is the message that goes with memory.
type given struct {
	Type  string   `json:"type"`
	ID    uint64   `json:"id"`
	Bytes uint64   `json:"bytes"`
	Drops []uint64 `json:"drops,omitempty"`
}

// give passes a memory to the program, unless it has it.
func (t *Talk) give(conn *net.UnixConn, m *desk.Memory) error {
	if slices.Contains(t.given, m) {
		return nil
	}
	file, bytes, err := m.File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the program has its own
	message := given{Type: "memory", ID: m.ID, Bytes: bytes}
	t.given = slices.DeleteFunc(t.given, func(old *desk.Memory) bool {
		if old.Closed() {
			message.Drops = append(message.Drops, old.ID)
			return true
		}
		return false
	})
	t.given = append(t.given, m)
	return write(conn, message, syscall.UnixRights(int(file.Fd())))
}

// write writes a message, with rights beside its first byte.
func write(conn *net.UnixConn, body any, rights []byte) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	m := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	if rights != nil {
		n, _, err := conn.WriteMsgUnix(m, rights, nil)
		if err != nil {
			return err
		}
		m = m[n:]
	}
	_, err = conn.Write(m)
	return err
}
