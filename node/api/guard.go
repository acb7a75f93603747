package api

import (
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// refuseBrowsers keeps web pages, but the daemon's own, away from an API that trusts whoever can
// reach loopback. A page that sends requests reveals itself: by the Origin header, or, if its own
// name resolves to 127.0.0.1, by the Host header. Without a preflight request it also can't send
// application/json. No browser can reach a unix socket.
func refuseBrowsers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := pageOrForm(r)
		if !fromUnixSocket(r) && !loopback(r.Host) {
			err = NewError(http.StatusForbidden, "the API answers to localhost and loopback addresses only, not to %q", r.Host)
		}
		if err != nil {
			fail(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownPage reports whether the page that the daemon serves reads, or asks for a forecast, which
// changes nothing: browsers name the origin of a module that they load. Nothing else is granted
// to it.
func ownPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost && r.URL.Path == "/v1/forecasts"
	return reads && r.Header.Get("Origin") == "http://"+r.Host
}

func fromUnixSocket(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && a.Network() == "unix"
}

// loopback reports whether a Host header, with or without a port, names loopback.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}
