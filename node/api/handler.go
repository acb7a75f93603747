package api

import (
	"io"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/hopmesh/hopmesh/node/api/page"
)

// Handler serves the whole API, and the page that shows it in a browser. It does not authenticate clients: it is for unix sockets,
// and for TCP on loopback behind Locked.
func Handler(b Backend, metrics http.Handler) http.Handler {
	s := server{b}
	mux := http.NewServeMux()
	s.public(mux, metrics)

	mux.HandleFunc("GET /v1/members", s.members)
	mux.HandleFunc("GET /v1/vitals", s.vitals)
	mux.HandleFunc("GET /v1/status", s.status)
	mux.HandleFunc("GET /v1/plan", s.plan)
	mux.HandleFunc("POST /v1/join", s.join)
	mux.HandleFunc("POST /v1/leave", s.leave)
	mux.HandleFunc("POST /v1/force-leave", s.forceLeave)
	mux.HandleFunc("GET /v1/tokens", s.tokens)
	mux.HandleFunc("POST /v1/tokens", s.createToken)
	mux.HandleFunc("DELETE /v1/tokens/{id}", s.revokeToken)
	mux.HandleFunc("GET /v1/ca", s.ca)
	mux.HandleFunc("POST /v1/ca/rotate", s.rotateCA)
	mux.HandleFunc("POST /v1/backup", s.backup)
	s.datasetRoutes(mux)
	s.jobRoutes(mux)
	mux.HandleFunc("GET /v1/events", s.events)
	mux.HandleFunc("GET /v1/monitor", s.monitor)

	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	for _, f := range page.Files() {
		mux.Handle("GET "+f.Pattern, f)
	}
	return refuseBrowsers(worded(mux))
}

// PublicHandler serves only health and metrics. It is for addresses that other machines
// can reach.
func PublicHandler(b Backend, metrics http.Handler) http.Handler {
	s := server{b}
	mux := http.NewServeMux()
	s.public(mux, metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, NewError(http.StatusForbidden,
			"this address serves only /metrics, /healthz and /readyz: use the unix socket or a loopback address on the node itself"))
	})
	return mux
}

// server answers requests from its backend.
type server struct{ Backend }

func (s server) public(mux *http.ServeMux, metrics http.Handler) {
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
}

func (s server) members(w http.ResponseWriter, r *http.Request) {
	list, err := s.Members(r.Context())
	answer(w, notNull(list), err)
}

func (s server) vitals(w http.ResponseWriter, r *http.Request) {
	list, err := s.Vitals(r.Context())
	answer(w, notNull(list), err)
}

func (s server) status(w http.ResponseWriter, r *http.Request) {
	st, err := s.Status(r.Context())
	st.Problems, st.Training = notNull(st.Problems), wholeSummaries(st.Training)
	answer(w, st, err)
}

func (s server) plan(w http.ResponseWriter, r *http.Request) {
	p, err := s.Plan(r.Context())
	p.Members, p.Gone, p.Jobs = notNull(p.Members), notNull(p.Gone), wholeSummaries(p.Jobs)
	answer(w, p, err)
}

func (s server) join(w http.ResponseWriter, r *http.Request) {
	var q JoinRequest
	if err := decode(w, r, &q); err != nil {
		fail(w, err)
		return
	}
	answer(w, Done{OK: true}, s.Join(r.Context(), q))
}

func (s server) leave(w http.ResponseWriter, r *http.Request) {
	answer(w, Done{OK: true}, s.Leave(r.Context()))
}

func (s server) forceLeave(w http.ResponseWriter, r *http.Request) {
	var q ForceLeaveRequest
	err := decode(w, r, &q)
	if err == nil && q.Name == "" {
		err = Invalid("the request names no node")
	}
	if err != nil {
		fail(w, err)
		return
	}
	out, err := s.ForceLeave(r.Context(), q)
	out.Tokens = notNull(out.Tokens)
	answer(w, out, err)
}

func (s server) tokens(w http.ResponseWriter, r *http.Request) {
	list, err := s.Tokens(r.Context())
	whole := make([]TokenInfo, len(list))
	for i, t := range list {
		t.Nodes = notNull(t.Nodes)
		whole[i] = t
	}
	answer(w, whole, err)
}

func (s server) createToken(w http.ResponseWriter, r *http.Request) {
	var q TokenRequest
	err := decode(w, r, &q)
	var ttl time.Duration
	if err == nil && q.TTL != "" {
		if ttl, err = time.ParseDuration(q.TTL); err != nil || ttl < 0 {
			err = Invalid("a token can't live for %q: give a duration such as 24h, or 0 for ever", q.TTL)
		}
	}
	if err != nil {
		fail(w, err)
		return
	}
	t, err := s.CreateToken(r.Context(), ttl, q.Uses)
	answer(w, t, err)
}

func (s server) revokeToken(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	answer(w, Done{ID: id, OK: true}, s.RevokeToken(r.Context(), id))
}

func (s server) ca(w http.ResponseWriter, r *http.Request) {
	ca, err := s.CA(r.Context())
	ca.Waiting = notNull(ca.Waiting)
	answer(w, ca, err)
}

func (s server) rotateCA(w http.ResponseWriter, r *http.Request) {
	ca, err := s.RotateCA(r.Context())
	ca.Waiting = notNull(ca.Waiting)
	answer(w, ca, err)
}

// backup is asked by POST, since its answer holds keys: where any user of the machine may read, it
// needs the secret.
func (s server) backup(w http.ResponseWriter, r *http.Request) {
	var q BackupRequest
	if r.ContentLength != 0 { // the body is optional
		if err := decode(w, r, &q); err != nil {
			fail(w, err)
			return
		}
	}
	deliver(w, func(to io.Writer) error {
		return s.Backup(r.Context(), q, to, func(b Backup) error { return b.announce(w.Header()) })
	})
}

// notNull makes an empty list print as [] instead of null.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
