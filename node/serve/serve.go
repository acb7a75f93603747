// Package serve listens for HTTP requests on unix sockets and TCP addresses. It knows which of
// them only this machine reaches, keeps the secrets for changes through those, and ends
// requests with the node.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/api/secret"
	"github.com/hopmesh/hopmesh/node/ongoing"
)

// Listener is one address where the API is served.
type Listener struct {
	net.Listener
	handler http.Handler
	log     *slog.Logger
	forget  func() // removes the secret's file
}

// Config says where to serve what.
type Config struct {
	// Socket is the path of a unix socket that is always served, and Addresses are others:
	// "unix:PATH", HOST:PORT, or https://HOST:PORT.
	Socket    string
	Addresses []string
	// Group is the name of the group that may use the unix sockets, too; "": their owner alone.
	Group string
	// Full is served where only this machine reaches it, on loopback behind a secret, and
	// Public elsewhere.
	Full, Public http.Handler
	// Remote is served over TLS, and TLS says how at each handshake.
	Remote http.Handler
	TLS    func() (*tls.Config, error)
	Log    *slog.Logger
}

// Open opens every address before any is served, so that a node that can't serve all of them
// serves none.
func Open(cfg Config) ([]*Listener, error) {
	gid, err := group(cfg.Group)
	if err != nil {
		return nil, err
	}
	if err := enter(filepath.Dir(cfg.Socket), gid); err != nil {
		return nil, err
	}
	var opened []*Listener
	addresses := []string{"unix:" + cfg.Socket}
	for _, addr := range cfg.Addresses {
		if !slices.Contains(addresses, addr) {
			addresses = append(addresses, addr)
		}
	}
	for _, addr := range addresses {
		l, err := listenAt(addr, gid)
		if err == nil {
			l.choose(cfg, secure(addr))
			opened = append(opened, l)
		} else {
			for _, o := range opened {
				o.forget()
				_ = o.Close()
			}
			return nil, err
		}
	}
	return opened, nil
}

// listenAt opens one address.
func listenAt(addr string, gid int) (*Listener, error) {
	l := &Listener{forget: func() {}}
	var err error
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		l.Listener, err = listenUnix(path, gid)
		return l, err
	}
	if strings.Contains(strings.TrimPrefix(addr, scheme), "://") {
		return nil, fmt.Errorf("the API is not served on %q: give HOST:PORT, https://HOST:PORT or unix:PATH with --api", addr)
	}
	if l.Listener, err = net.Listen("tcp", strings.TrimPrefix(addr, scheme)); err != nil {
		return nil, fmt.Errorf("serve the API on %s: %w; choose another with --api", addr, err)
	}
	return l, nil
}

// scheme stands in front of addresses where the API is served over TLS.
const scheme = "https://"

func secure(addr string) bool { return strings.HasPrefix(addr, scheme) }

// choose decides what is served, by who reaches the address.
func (l *Listener) choose(cfg Config, secure bool) {
	l.log, l.handler = cfg.Log, cfg.Public
	if secure {
		l.handler = cfg.Remote
		l.Listener = tls.NewListener(l.Listener, &tls.Config{
			MinVersion:         tls.VersionTLS13,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return cfg.TLS() },
		})
		return
	}
	if l.Addr().Network() == "unix" {
		l.handler = cfg.Full
		return
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil || !bound.Addr().Unmap().IsLoopback() {
		return // what can't be told to be loopback is public
	}
	key := secret.New()
	path, err := secret.Save(bound, key)
	if err != nil {
		// Another user may be to blame, who must not keep the node from starting.
		cfg.Log.Warn("the API serves reads alone on an address, since no secret for changes can be kept: use the socket in the data directory", "addr", bound, "err", err)
		l.handler = api.ReadOnly(cfg.Full)
		return
	}
	l.forget = func() { secret.Remove(path, key) }
	l.handler = api.Locked(cfg.Full, key, path)
}

// maxSocketPath is what Linux allows for the path of a unix socket.
const maxSocketPath = 107

func listenUnix(path string, gid int) (net.Listener, error) {
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
	if err := open(path, gid); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// maxHeader bounds what a client sends before anything is known of it. A token has ninety bytes.
const maxHeader = 16 << 10

// Serve runs until ctx ends, then lets requests under way finish briefly.
func (l *Listener) Serve(ctx context.Context) error {
	// The cause that ended the node, such as a signal, means nothing to a client.
	requests, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(ongoing.ErrStopping) })()
	s := &http.Server{
		Handler: l.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(l.log.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return requests },
	}
	stopped := make(chan error, 1)
	defer l.forget()
	stop := context.AfterFunc(ctx, func() {
		// While the address is still this daemon's: the next has a secret of its own.
		l.forget()
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
