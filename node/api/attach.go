package api

import (
	"net"
	"net/http"
	"strings"
	"time"
)

// ProgramProtocol is what a connection is upgraded to when a program attaches to a job.
const ProgramProtocol = "hopmesh-program/1"

// An Attachment is a program that attaches to a job. One of its methods is called.
type Attachment interface {
	// Serve speaks with the program until it or the job leaves, and closes the connection.
	Serve(conn *net.UnixConn)
	Leave()
}

// attach hands the connection over to the job. Memory can only be passed over a unix socket.
func attach(b Backend, w http.ResponseWriter, r *http.Request) {
	if !fromUnixSocket(r) {
		fail(w, NewError(http.StatusForbidden, "a program attaches over the unix socket in the data directory of its node, which passes memory on: connect there"))
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), ProgramProtocol) {
		w.Header().Set("Upgrade", ProgramProtocol)
		fail(w, NewError(http.StatusUpgradeRequired, "a program that attaches to a job speaks %s: send the headers Connection: Upgrade and Upgrade: %s", ProgramProtocol, ProgramProtocol))
		return
	}
	a, err := b.Attach(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		a.Leave()
		fail(w, err)
		return
	}
	unix, is := conn.(*net.UnixConn)
	_, err = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + ProgramProtocol + "\r\n\r\n"))
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	// A program speaks once it has been answered.
	if !is || err != nil || buffered.Reader.Buffered() > 0 {
		a.Leave()
		_ = conn.Close() // its error would change nothing
		return
	}
	a.Serve(unix)
}
