package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hopmesh/hopmesh/node/api/pin"
	"github.com/hopmesh/hopmesh/node/api/secret"
)

const (
	dialTimeout = 5 * time.Second
	// readTimeout bounds requests that a node answers from local state.
	readTimeout = 10 * time.Second
	// changeTimeout bounds requests that need a leader: nodes wait 10 s for one, and a
	// join 30 s for its peers.
	changeTimeout = 45 * time.Second
	// maxAnswer bounds an answer, and a line of a stream.
	maxAnswer = 64 << 20
)

// Client talks to one node's API. It is safe for concurrent use.
type Client struct {
	addr string // as given, for messages
	tcp  bool
	base string // URL without path
	// token is shown with each request, to nodes of the mesh that it pins; "": none.
	token string
	http  *http.Client
}

// NewClient makes a client for "unix:PATH" or HOST:PORT. It does not connect.
func NewClient(addr string) (*Client, error) {
	network, target := "tcp", addr
	base := "http://" + addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return nil, fmt.Errorf("the address %q names no socket: give unix:PATH or HOST:PORT", addr)
		}
		network, target, base = "unix", path, "http://localhost"
	} else if IsTLS(addr) {
		return nil, fmt.Errorf("the API at %s needs a token: give --api-token-file FILE with what `hopmesh api token create` prints", addr)
	} else if !isHostPort(addr) {
		return nil, fmt.Errorf("%q is no address of a daemon: give unix:PATH or HOST:PORT", addr)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return &Client{addr: addr, tcp: network == "tcp", base: base, http: &http.Client{
		Transport: &http.Transport{
			// No proxy: to a proxy, loopback is another machine.
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				to := target
				if _, at := secret.Find(target); network == "tcp" && at != "" {
					to = at
				}
				return dialer.DialContext(ctx, network, to)
			},
			IdleConnTimeout: 30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// NewTLSClient makes a client for https://HOST:PORT, which shows a token of the API. It sends it
// only to nodes of the mesh that the token pins. It does not connect.
func NewTLSClient(addr, token string) (*Client, error) {
	target, is := strings.CutPrefix(addr, schemeTLS)
	if !is || !isHostPort(target) {
		return nil, fmt.Errorf("%q is no address of a daemon: give https://HOST:PORT", addr)
	}
	authority, token, err := pin.Authority(token)
	if err != nil {
		return nil, err
	}
	return &Client{addr: addr, base: addr, token: token, http: &http.Client{
		Transport: &http.Transport{
			// No proxy, as for other clients: the connection must end at a node.
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     pin.TLS(authority),
			TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout:     30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// schemeTLS stands in front of addresses where the API is served over TLS.
const schemeTLS = "https://"

// IsTLS reports whether the API is served over TLS at an address, so that it needs a token.
func IsTLS(addr string) bool { return strings.HasPrefix(addr, schemeTLS) }

func isHostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || strings.ContainsAny(host, "/?#@%\\ ") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return false
	}
	u, err := url.Parse("http://" + addr)
	return err == nil && u.Host == addr
}

// Addr returns the address that the client was made for.
func (c *Client) Addr() string { return c.addr }

// Close closes idle connections. Calls under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Members returns the nodes.
func (c *Client) Members(ctx context.Context) (list []Member, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/members", nil, &list)
}

// Vitals returns how the nodes are at this moment.
func (c *Client) Vitals(ctx context.Context) (list []NodeVitals, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/vitals", nil, &list)
}

// Status returns the node's status.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, readTimeout, http.MethodGet, "/v1/status", nil, &s)
}

// Plan returns the plan in force.
func (c *Client) Plan(ctx context.Context) (p Plan, err error) {
	return p, c.call(ctx, readTimeout, http.MethodGet, "/v1/plan", nil, &p)
}

// Join brings the node into a mesh.
func (c *Client) Join(ctx context.Context, r JoinRequest) error {
	return c.call(ctx, changeTimeout, http.MethodPost, "/v1/join", r, nil)
}

// Leave takes the node out of its mesh. Only ctx bounds it, since handing over the node's
// shards may take long.
func (c *Client) Leave(ctx context.Context) error {
	return c.call(ctx, 0, http.MethodPost, "/v1/leave", nil, nil)
}

// ForceLeave removes another node from the mesh.
func (c *Client) ForceLeave(ctx context.Context, r ForceLeaveRequest) (out ForcedOut, err error) {
	return out, c.call(ctx, changeTimeout, http.MethodPost, "/v1/force-leave", r, &out)
}

// CreateToken makes a token for newcomers; with a ttl of 0 it never expires, and with uses
// of 0 it admits any number of nodes.
func (c *Client) CreateToken(ctx context.Context, ttl time.Duration, uses uint64) (t Token, err error) {
	return t, c.call(ctx, changeTimeout, http.MethodPost, "/v1/tokens", TokenRequest{TTL: ttl.String(), Uses: uses}, &t)
}

// Tokens lists the tokens that the mesh accepts.
func (c *Client) Tokens(ctx context.Context) (list []TokenInfo, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/tokens", nil, &list)
}

// CA says which CA the mesh has, and which nodes wait for a certificate of it.
func (c *Client) CA(ctx context.Context) (ca CA, err error) {
	return ca, c.call(ctx, changeTimeout, http.MethodGet, "/v1/ca", nil, &ca)
}

// RotateCA begins to replace the mesh's CA.
func (c *Client) RotateCA(ctx context.Context) (ca CA, err error) {
	return ca, c.call(ctx, changeTimeout, http.MethodPost, "/v1/ca/rotate", nil, &ca)
}

// RevokeToken revokes a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, changeTimeout, http.MethodDelete, "/v1/tokens/"+url.PathEscape(id), nil, nil)
}

// Access lists the tokens by which the API is used from other machines.
func (c *Client) Access(ctx context.Context) (list []AccessInfo, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/access", nil, &list)
}

// GrantAccess makes such a token.
func (c *Client) GrantAccess(ctx context.Context, r AccessRequest) (t AccessToken, err error) {
	return t, c.call(ctx, changeTimeout, http.MethodPost, "/v1/access", r, &t)
}

// RevokeAccess revokes such a token.
func (c *Client) RevokeAccess(ctx context.Context, id string) error {
	return c.call(ctx, changeTimeout, http.MethodDelete, "/v1/access/"+url.PathEscape(id), nil, nil)
}

// Backup writes a backup, and says what is in it.
func (c *Client) Backup(ctx context.Context, r BackupRequest, to io.Writer) (b Backup, err error) {
	err = c.fetch(ctx, "/v1/backup", r, to, func(h http.Header) (err error) {
		if b, err = announced(h); err != nil {
			return fmt.Errorf("read the answer of the daemon at %s: %w", c.addr, err)
		}
		return nil
	})
	return b, err
}

// Events yields events until ctx ends or the node stops. An error comes last.
func (c *Client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return follow[Event](ctx, c, "/v1/events")
}

// Logs yields the node's log from the given level up, until ctx ends or the node
// stops. An error comes last.
func (c *Client) Logs(ctx context.Context, level slog.Level) iter.Seq2[LogLine, error] {
	return follow[LogLine](ctx, c, "/v1/monitor?level="+url.QueryEscape(level.String()))
}

// call sends one request and reads its answer into out, which may be nil.
func (c *Client) call(ctx context.Context, timeout time.Duration, method, path string, in, out any) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the daemon at %s did not answer within %s", c.addr, timeout))
		defer cancel()
	}
	body, err := c.open(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return c.broken(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read the answer of the daemon at %s: %w", c.addr, err)
	}
	return nil
}

// open sends a request and returns the body of a successful response.
func (c *Client) open(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	res, err := c.send(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// send sends a request and returns a successful response. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("ask the daemon at %s: %w", c.addr, err)
		}
	}
	var keys []string
	for first := true; ; first = false {
		r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("ask the daemon at %s: %w", c.addr, err)
		}
		if method != http.MethodGet {
			r.Header.Set("Content-Type", "application/json")
		}
		if first && c.tcp && !onlyReads(r) {
			// At each request: the daemon may have been started again. Without a secret it says
			// what to do.
			keys, _ = secret.Find(c.addr)
		}
		if c.token != "" {
			r.Header.Set("Authorization", bearer+c.token)
		}
		if len(keys) > 0 {
			r.Header.Set("Authorization", bearer+keys[0])
			keys = keys[1:]
		}
		res, err := c.http.Do(r)
		if err != nil {
			return nil, c.broken(ctx, err)
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		err = c.refusal(res)
		_ = res.Body.Close() // it was only read
		if res.StatusCode != http.StatusForbidden || len(keys) == 0 {
			return nil, err
		}
	}
}

// refusal returns the error of an unsuccessful response.
func (c *Client) refusal(res *http.Response) error {
	var e failure
	b, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err == nil && isJSON(res.Header.Get("Content-Type")) && json.Unmarshal(b, &e) == nil && e.Error != "" {
		return &Error{Status: res.StatusCode, Message: e.Error}
	}
	if c.token == "" && strings.HasPrefix(string(b), "Client sent an HTTP request to an HTTPS server") { // as net/http says it
		return NewError(res.StatusCode, "the daemon at %s serves its API over TLS there: give --addr https://%s and --api-token-file FILE", c.addr, c.addr)
	}
	return NewError(res.StatusCode, "what answers at %s does not know this request (%s): it is no hopmesh daemon, or one of another version", c.addr, res.Status)
}

// broken turns a failure to reach the daemon into a sentence.
func (c *Client) broken(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w at %s: %s", ErrPermission, c.addr, whoMay(strings.TrimPrefix(c.addr, "unix:")))
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &absent{c.addr}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return c.gone("before it had answered")
	}
	if err := c.strange(err); err != nil {
		return err
	}
	// The URL that *url.Error adds is useless: for a unix socket it is made up.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("talk to the daemon at %s: %w", c.addr, err)
}

// strange puts what goes wrong with TLS into a sentence, and returns nil for all else.
func (c *Client) strange(err error) error {
	if c.token == "" {
		return nil
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain || errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("no TLS is spoken at %s: start the agent there with --api %s", c.addr, c.addr)
	}
	alert, is := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, pin.ErrForeign):
		return fmt.Errorf("the node at %s is not of the mesh that the token is of: nothing was sent to it; check the address, or make a token on that mesh with `hopmesh api token create`", c.addr)
	case errors.Is(err, pin.ErrExpired):
		return fmt.Errorf("the node at %s was not trusted: %w", c.addr, pin.ErrExpired)
	case is && alert.Op == "remote error":
		return fmt.Errorf("the daemon at %s has no certificate to show yet, since it is in no mesh: see `hopmesh status` on its machine", c.addr)
	}
	return nil
}

// ended returns the error of a client whose token has ended, which ends its streams, too.
func (c *Client) ended(ctx context.Context) error {
	if c.token == "" {
		return nil
	}
	err := c.call(ctx, readTimeout, http.MethodGet, "/v1/access", nil, nil)
	if e, is := errors.AsType[*Error](err); is && e.Status == http.StatusUnauthorized {
		return err
	}
	return nil // the node stops
}

// absent is ErrNoDaemon with the address, worded to stand in front of a reason.
type absent struct{ addr string }

func (a *absent) Error() string {
	return fmt.Sprintf("no daemon at %s: start one with `hopmesh agent`, or name another with --addr", a.addr)
}

func (a *absent) Is(target error) bool { return target == ErrNoDaemon }

// gone returns an error for a daemon that ended or closed the connection at some point.
func (c *Client) gone(when string) error { return &leaver{c.addr, when} }

// leaver is ErrGone with the address and the time, worded to stand in front of a reason.
type leaver struct{ addr, when string }

func (l *leaver) Error() string { return fmt.Sprintf("the daemon at %s went away %s", l.addr, l.when) }

func (l *leaver) Is(target error) bool { return target == ErrGone }

// follow reads a stream of JSON lines.
func follow[T any](ctx context.Context, c *Client, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		body, err := c.open(ctx, http.MethodGet, path, nil)
		if err != nil {
			yield(zero, err)
			return
		}
		defer body.Close()
		// A stream may be endless, so the limit applies to each line. A decoder alone
		// would buffer without bound.
		limited := &io.LimitedReader{R: body}
		lines := json.NewDecoder(limited)
		for {
			limited.N = maxAnswer
			var v T
			switch err := lines.Decode(&v); {
			case err == nil:
			case ctx.Err() != nil:
				return
			case errors.Is(err, io.EOF):
				if err := c.ended(ctx); err != nil {
					yield(zero, err)
				}
				return
			default:
				yield(zero, c.broken(ctx, err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
