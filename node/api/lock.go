package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Locked serves h where any user of the machine can connect. What only reads is open. What
// changes something, makes the daemon read or write files or lets one look into its process
// needs the secret, which is in a file at path.
func Locked(h http.Handler, secret, path string) http.Handler {
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !onlyReads(r) {
			given, _ := shown(r)
			// Digests are of equal length, so that the time does not tell that of the secret.
			if got := sha256.Sum256([]byte(given)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
				fail(w, NewError(http.StatusForbidden,
					"this needs the secret in %s, which commands find by themselves if they run as the user that runs the daemon: do so, or use the socket in the daemon's data directory", path))
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// ReadOnly serves h where any user of the machine can connect, and no secret could be kept. What
// needs one is refused.
func ReadOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !onlyReads(r) {
			fail(w, NewError(http.StatusForbidden,
				"this address is for reading only, since the daemon could not keep a secret for changes, as its log says: use the socket in its data directory"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// bearer stands in front of the secret in the header Authorization.
const bearer = "Bearer "

// shown returns the secret that a request shows. The scheme's name may be in any case.
func shown(r *http.Request) (secret string, is bool) {
	h := r.Header.Get("Authorization")
	if len(h) < len(bearer) || !strings.EqualFold(h[:len(bearer)], bearer) {
		return "", false
	}
	return h[len(bearer):], true
}

// onlyReads reports whether a request reads what everybody may see. Profiles are not that:
// they show the command line, and take processor time. Nor is a program that attaches to a
// job, since it decides what is learned.
func onlyReads(r *http.Request) bool {
	attaches := strings.HasPrefix(r.URL.Path, "/v1/jobs/") && strings.HasSuffix(r.URL.Path, "/attach")
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !attaches && !strings.HasPrefix(r.URL.Path, "/debug/")
}
