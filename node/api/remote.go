package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/hopmesh/hopmesh/node/api/limit"
)

// recheck is how often a request that lasts looks whether its token still holds.
const recheck = 2 * time.Second

// Remote serves the API over TLS, where other machines can connect: to who shows a token, and by its
// scope. What lets others in, shows keys or looks into the process is not served.
func Remote(b Backend, metrics http.Handler) http.Handler {
	s := server{b}
	mux, needs := http.NewServeMux(), map[string]who{}
	for _, r := range slices.Concat(s.apiRoutes(metrics), debugRoutes()) {
		mux.HandleFunc(r.pattern, r.serve)
		needs[r.pattern] = r.who
	}
	g := gate{b: b, next: worded(mux), failures: new(limit.Failures), now: time.Now}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		briefly(w)
		need := readers // also to learn what there is not
		if _, pattern := mux.Handler(r); pattern != "" {
			need = needs[pattern]
		}
		g.pass(w, r, need)
	})
}

// gate lets requests pass that show a token of the scope that they need.
type gate struct {
	b        Backend
	next     http.Handler
	failures *limit.Failures
	now      func() time.Time
}

func (g *gate) pass(w http.ResponseWriter, r *http.Request, need who) {
	if err := pageOrForm(r); err != nil {
		fail(w, err)
		return
	}
	if need == anybody {
		g.next.ServeHTTP(w, r)
		return
	}
	given, scheme := shown(r)
	if !scheme || given == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, NewError(http.StatusUnauthorized, "the API needs a token here: give --api-token-file FILE, or send the header Authorization: Bearer TOKEN; `hopmesh api token create` on a node makes one"))
		return
	}
	scope, err := g.b.Scope(given)
	if unable, is := errors.AsType[*Error](err); is {
		fail(w, unable) // nothing was found out about the token
		return
	}
	if err != nil {
		// A right token passes all the same: it can't be guessed, and many machines may have one
		// address.
		host := hostOf(r)
		if wait := g.failures.Wait(host, g.now()); wait > 0 {
			seconds := int(math.Ceil(wait.Seconds()))
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			fail(w, NewError(http.StatusTooManyRequests, "too many wrong tokens came from this host: try again in %d s", seconds))
			return
		}
		g.failures.Note(host, g.now())
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		fail(w, NewError(http.StatusUnauthorized, "%v", err))
		return
	}
	if err := allowed(scope, need); err != nil {
		fail(w, err)
		return
	}
	g.watched(w, r, given)
}

// allowed returns an error unless who has a token of this scope may make a request.
func allowed(scope string, need who) error {
	switch {
	case need > operators:
		return NewError(http.StatusForbidden, "this is not served to other machines, whatever the token: run it on the node, over the socket in its data directory")
	case need == readers && (scope == ScopeRead || scope == ScopeOperate), need == operators && scope == ScopeOperate:
		return nil
	}
	return NewError(http.StatusForbidden, "this needs a token of the scope %s, and this one has the scope %s: `hopmesh api token create --scope %s` on a node makes one", ScopeOperate, scope, ScopeOperate)
}

// watched serves a request as long as its token holds.
func (g *gate) watched(w http.ResponseWriter, r *http.Request, token string) {
	ctx, cancel := context.WithCancelCause(r.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		again := time.NewTicker(recheck)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				if _, err := g.b.Scope(token); err != nil {
					cancel(NewError(http.StatusUnauthorized, "%v", err))
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel(nil)
		<-over
	}()
	lasting(w)
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

// hostOf returns the address that a request comes from.
func hostOf(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // no host, and one for all such
	}
	return from.Addr()
}

// pageOrForm returns an error for what comes from a web page, of which none is let in, and for what
// a form could send.
func pageOrForm(r *http.Request) error {
	switch {
	case r.Header.Get("Origin") != "" && (r.TLS != nil || !ownPage(r)):
		return NewError(http.StatusForbidden, "the API does not answer to web pages")
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !isJSON(r.Header.Get("Content-Type")):
		return NewError(http.StatusUnsupportedMediaType, "a %s request needs the header Content-Type: application/json", r.Method)
	}
	return nil
}
