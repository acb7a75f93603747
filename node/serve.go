package node

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

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// An apiListener is one place where the API is served.
type apiListener struct {
	net.Listener
	handler http.Handler
	log     *slog.Logger
}

// listenAPI opens every place before any is served, so that a node that cannot
// serve all of them serves none.
func (n *Node) listenAPI(dir *dataDir) ([]*apiListener, error) {
	if n.opts.NoAPI {
		return nil, nil
	}
	metrics := promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{})
	full := api.Handler(n.Backend(), metrics)
	public := api.PublicHandler(n.Backend(), metrics)
	var open []*apiListener
	places := []string{"unix:" + dir.socket()}
	for _, addr := range n.opts.API {
		if !slices.Contains(places, addr) {
			places = append(places, addr)
		}
	}
	for _, addr := range places {
		l, local, err := listenAt(addr)
		if err != nil {
			for _, o := range open {
				_ = o.Close()
			}
			return nil, err
		}
		h := public
		if local {
			h = full
		}
		open = append(open, &apiListener{l, h, n.log})
	}
	return open, nil
}

// listenAt opens one address and says whether only this machine reaches it.
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
	// The directory is locked: whoever left the socket behind is gone.
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

// serve runs until ctx ends, then lets requests under way finish briefly.
func (l *apiListener) serve(ctx context.Context) error {
	// What ends the node, a signal say, tells whoever asked for something nothing.
	requests, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { end(errStopping) })()
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
