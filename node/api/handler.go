package api

import (
	"io"
	"net/http"
	"net/http/pprof"
	"slices"

	"github.com/hopmesh/hopmesh/node/api/page"
)

// Handler serves the whole API, and the page that shows it in a browser. It does not authenticate
// clients: it is for unix sockets, and for TCP on loopback behind Locked.
func Handler(b Backend, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, r := range (server{b}).routes(metrics) {
		mux.HandleFunc(r.pattern, r.serve)
	}
	return refuseBrowsers(worded(mux))
}

// PublicHandler serves only health and metrics. It is for addresses that other machines
// can reach.
func PublicHandler(b Backend, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, r := range (server{b}).publicRoutes(metrics) {
		mux.HandleFunc(r.pattern, r.serve)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, NewError(http.StatusForbidden,
			"this address serves only /metrics, /healthz and /readyz: use the unix socket or a loopback address on the node itself, or have the API served over TLS with `hopmesh agent --api https://HOST:PORT`"))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		briefly(w)
		mux.ServeHTTP(w, r)
	})
}

// server answers requests from its backend.
type server struct{ Backend }

// routes are all of the API's, and those of the page.
func (s server) routes(metrics http.Handler) []route {
	return slices.Concat(s.apiRoutes(metrics), debugRoutes(), pageRoutes())
}

func (s server) apiRoutes(metrics http.Handler) []route {
	return slices.Concat(s.publicRoutes(metrics), s.meshRoutes(), s.accessRoutes(), s.datasetRoutes(), s.jobRoutes(), s.runRoutes(), documentRoutes())
}

func (s server) publicRoutes(metrics http.Handler) []route {
	return []route{
		{"GET /metrics", readers, "Metrics for Prometheus.", nil, serves(mediaText, metrics.ServeHTTP)},
		{"GET /healthz", anybody, "Says that the process is alive and answers.", nil, serves(mediaText, s.healthz)},
		{
			"GET /readyz", anybody, "Says whether the node can do its work, by the status 200 or 503.",
			[]parameter{{"verbose", "if it is given, each check is listed"}},
			serves(mediaText, s.readyz),
		},
	}
}

func (s server) meshRoutes() []route {
	return []route{
		{"GET /v1/members", readers, "Lists the nodes of the mesh, and those that have left it.", nil, asks(func(r *http.Request) ([]Member, error) {
			list, err := s.Members(r.Context())
			return notNull(list), err
		})},
		{"GET /v1/vitals", readers, "How much memory each node takes, and how fast its links carry data. Waits a second for nodes that are slow.", nil, asks(func(r *http.Request) ([]NodeVitals, error) {
			list, err := s.Vitals(r.Context())
			return notNull(list), err
		})},
		{"GET /v1/status", readers, "The mesh as the asked node sees it, and what is wrong.", nil, asks(func(r *http.Request) (Status, error) {
			st, err := s.Status(r.Context())
			st.Problems, st.Training = notNull(st.Problems), wholeSummaries(st.Training)
			return st, err
		})},
		{"GET /v1/plan", readers, "The plan in force, as the asked node knows it.", nil, asks(func(r *http.Request) (Plan, error) {
			p, err := s.Plan(r.Context())
			p.Members, p.Gone, p.Jobs = notNull(p.Members), notNull(p.Gone), wholeSummaries(p.Jobs)
			return p, err
		})},
		{"POST /v1/join", owners, "Brings a node that is in no mesh into one.", nil, takes(func(r *http.Request, q JoinRequest) (Done, error) {
			return Done{OK: true}, s.Join(r.Context(), q)
		})},
		{"POST /v1/leave", operators, "Takes the asked node out of its mesh, after its shards were given away.", nil, asks(func(r *http.Request) (Done, error) {
			return Done{OK: true}, s.Leave(r.Context())
		})},
		{"POST /v1/force-leave", owners, "Removes another node from the mesh. The answer may hold a join token.", nil, takes(func(r *http.Request, q ForceLeaveRequest) (ForcedOut, error) {
			out, err := s.ForceLeave(r.Context(), q)
			out.Tokens = notNull(out.Tokens)
			return out, err
		})},
		{"GET /v1/tokens", readers, "Lists the join tokens that the mesh accepts, without their secrets.", nil, asks(s.tokens)},
		{"POST /v1/tokens", owners, "Makes a join token.", nil, takes(func(r *http.Request, q TokenRequest) (Token, error) {
			ttl, err := lifeOf(q.TTL)
			if err != nil {
				return Token{}, err
			}
			return s.CreateToken(r.Context(), ttl, q.Uses)
		})},
		{"DELETE /v1/tokens/{id}", operators, "Revokes a join token.", nil, asks(func(r *http.Request) (Done, error) {
			id := r.PathValue("id")
			return Done{ID: id, OK: true}, s.RevokeToken(r.Context(), id)
		})},
		{"GET /v1/ca", readers, "The mesh's certificate authority, and which nodes have no certificate of it yet.", nil, asks(func(r *http.Request) (CA, error) {
			ca, err := s.CA(r.Context())
			ca.Waiting = notNull(ca.Waiting)
			return ca, err
		})},
		{"POST /v1/ca/rotate", owners, "Begins to replace the mesh's certificate authority.", nil, asks(func(r *http.Request) (CA, error) {
			ca, err := s.RotateCA(r.Context())
			ca.Waiting = notNull(ca.Waiting)
			return ca, err
		})},
		// By POST, since its answer holds keys: where any user of the machine may read, it needs the
		// secret.
		{"POST /v1/backup", owners, "A file from which the mesh can be begun anew. It holds keys.", nil, delivers(func(w http.ResponseWriter, r *http.Request, q BackupRequest, to io.Writer) error {
			return s.Backup(r.Context(), q, to, func(b Backup) error { return b.announce(w.Header()) })
		}).orNothing()},
		{"GET /v1/events", readers, "What happens in the mesh, as it happens.", nil, follows(func(r *http.Request) (<-chan Event, error) {
			return s.Events(r.Context()), nil
		})},
		{
			"GET /v1/monitor", readers, "The log of the asked node, as it is written.",
			[]parameter{{"level", "the lowest level: debug, info (the default), warn or error"}},
			follows(s.monitor),
		},
	}
}

func (s server) accessRoutes() []route {
	return []route{
		{"GET /v1/access", readers, "Lists the tokens by which the API is used from other machines, without their secrets.", nil, asks(func(r *http.Request) ([]AccessInfo, error) {
			list, err := s.Access(r.Context())
			return notNull(list), err
		})},
		{"POST /v1/access", owners, "Makes a token by which the API is used from other machines.", nil, takes(func(r *http.Request, q AccessRequest) (AccessToken, error) {
			return s.GrantAccess(r.Context(), q)
		})},
		{"DELETE /v1/access/{id}", owners, "Revokes a token by which the API is used from other machines.", nil, asks(func(r *http.Request) (Done, error) {
			id := r.PathValue("id")
			return Done{ID: id, OK: true}, s.RevokeAccess(r.Context(), id)
		})},
	}
}

// pageRoutes serve the page and its files.
func pageRoutes() (list []route) {
	for _, f := range page.Files() {
		list = append(list, route{"GET " + f.Pattern, anybody, "The page that shows the mesh in a browser.", nil, serves(mediaPage, f.ServeHTTP)})
	}
	return list
}

func debugRoutes() []route {
	return []route{
		{"GET /debug/pprof/", owners, "Lists the profiles of the process. Below it each is read by its name.", nil, serves(mediaPage, pprof.Index)},
		{"GET /debug/pprof/cmdline", owners, "The command line of the process.", nil, serves(mediaText, pprof.Cmdline)},
		{"GET /debug/pprof/profile", owners, "A profile of the processor's time.", []parameter{{"seconds", "how long to measure, 30 by default"}}, serves(mediaFile, pprof.Profile)},
		{"GET /debug/pprof/symbol", owners, "The names of program counters.", nil, serves(mediaText, pprof.Symbol)},
		{"GET /debug/pprof/trace", owners, "A trace of the process.", []parameter{{"seconds", "how long to trace, 1 by default"}}, serves(mediaFile, pprof.Trace)},
	}
}

func (s server) tokens(r *http.Request) ([]TokenInfo, error) {
	list, err := s.Tokens(r.Context())
	whole := make([]TokenInfo, len(list))
	for i, t := range list {
		t.Nodes = notNull(t.Nodes)
		whole[i] = t
	}
	return whole, err
}

// notNull makes an empty list print as [] instead of null.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
