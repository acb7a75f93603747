package desktest

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"github.com/hopmesh/hopmesh/engine/desk"
)

// A Wire is a Line over a node's socket.
type Wire struct {
	Conn   *net.UnixConn
	mapped map[uint64][]byte
	Drops  []uint64 // memories that the node has given back
}

// Dial attaches to a job.
func Dial(socket, job string) (*Wire, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	w := &Wire{Conn: conn.(*net.UnixConn), mapped: map[uint64][]byte{}}
	if _, err := fmt.Fprintf(conn, "GET /v1/jobs/%s/attach HTTP/1.1\r\nHost: hopmesh\r\nConnection: Upgrade\r\nUpgrade: hopmesh-program/1\r\n\r\n", job); err != nil {
		return nil, err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }() // where it has none, the connection stays open
	if r.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(r.Body)
		_ = conn.Close()
		return nil, fmt.Errorf("%s: %s", r.Status, text)
	}
	return w, nil
}

// Ask implements Line.
func (w *Wire) Ask(q desk.Question) (r Reply, err error) {
	text, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	if err := w.Send(text); err != nil {
		return r, err
	}
	for {
		text, file, err := w.receive()
		if err != nil {
			return r, err
		}
		var m struct {
			Reply
			ID    uint64   `json:"id"`
			Drops []uint64 `json:"drops"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return r, err
		}
		if m.Type != "memory" {
			return m.Reply, nil
		}
		w.Drops = append(w.Drops, m.Drops...)
		for _, id := range m.Drops {
			if err := unix.Munmap(w.mapped[id]); err != nil {
				return r, fmt.Errorf("memory %d is dropped: %w", id, err)
			}
			delete(w.mapped, id)
		}
		if w.mapped[m.ID], err = unix.Mmap(file, 0, int(m.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return r, err
		}
		if err := unix.Close(file); err != nil {
			return r, err
		}
	}
}

// Send sends a message.
func (w *Wire) Send(text []byte) error {
	_, err := w.Conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// receive returns a message, and the file that came with it, or -1.
func (w *Wire) receive() (text []byte, file int, err error) {
	file = -1
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, of, _, _, err := w.Conn.ReadMsgUnix(head[:], rights)
	if err != nil {
		return nil, file, err
	}
	if n == 0 {
		return nil, file, io.EOF
	}
	if of > 0 {
		all, err := unix.ParseSocketControlMessage(rights[:of])
		if err != nil {
			return nil, file, err
		}
		files, err := unix.ParseUnixRights(&all[0])
		if err != nil {
			return nil, file, err
		}
		file = files[0]
	}
	if _, err := io.ReadFull(w.Conn, head[n:]); err != nil {
		return nil, file, err
	}
	text = make([]byte, binary.LittleEndian.Uint32(head[:]))
	_, err = io.ReadFull(w.Conn, text)
	return text, file, err
}

// Data implements Line.
func (w *Wire) Data(r desk.Region) []byte { return w.mapped[r.Memory][r.Offset:][:r.Bytes] }
