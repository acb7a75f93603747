// Package serve listens for HTTP requests on unix sockets and TCP addresses. It knows which of
// them only this machine reaches, and ends requests with the node.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/ongoing"
)

// Listener is one address where the API is served.
type Listener struct {
	net.Listener
	handler http.Handler
	log     *slog.Logger
}

// Config says where to serve what.
type Config struct {
	// Socket is the path of a unix socket that is always served, and Addresses are others:
	// "unix:PATH" or HOST:PORT.
	Socket    string
	Addresses []string
	// Full is served where only this machine reaches it, and Public elsewhere.
	Full, Public http.Handler
	Log          *slog.Logger
}

// Open opens every address before any is served, so that a node that can't serve all of them
// serves none.
func Open(cfg Config) ([]*Listener, error) {
	var open []*Listener
	addresses := []string{"unix:" + cfg.Socket}
	for _, addr := range cfg.Addresses {
		if !slices.Contains(addresses, addr) {
			addresses = append(addresses, addr)
		}
	}
	for _, addr := range addresses {
		l, local, err := listenAt(addr)
		if err != nil {
			for _, o := range open {
				_ = o.Close()
			}
			return nil, err
		}
		h := cfg.Public
		if local {
			h = cfg.Full
		}
		open = append(open, &Listener{l, h, cfg.Log})
	}
	return open, nil
}

// listenAt opens one address and reports whether only this machine reaches it.
func listenAt(addr string) (l net.Listener, local bool, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		l, err = listenUnix(path)
		return l, true, err
	}
	l, err = net.Listen("tcp", addr)
	if err != nil {
		return nil, false, fmt.Errorf("serve the API on %s: %w; choose another with --api", addr, err)
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	return l, err == nil && bound.Addr().Unmap().IsLoopback(), nil
}

// maxSocketPath is what Linux allows for the path of a unix socket.
const maxSocketPath = 107

func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the API's socket %s has a path of %d characters, %d are allowed: choose a shorter --data-dir", path, len(path), maxSocketPath)
	}
	// The directory is locked, so the process that left the socket behind is gone.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace the API's socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve the API on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect the API's socket %s: %w", path, err)
	}
	return l, nil
}

// Serve runs until ctx ends, then lets requests under way finish briefly.
func (l *Listener) Serve(ctx context.Context) error {
	// The cause that ended the node, such as a signal, means nothing to a client.
	requests, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(ongoing.ErrStopping) })()
	s := &http.Server{
		Handler: l.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog:    slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := s.Shutdown(grace)
		if err != nil {
			err = s.Close()
		}
		stopped <- err
	})
	err := s.Serve(l.Listener)
	if stop() {
		return fmt.Errorf("serve the API on %s: %w", l.Addr(), err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop the API on %s: %w", l.Addr(), err)
	}
	return nil
}
