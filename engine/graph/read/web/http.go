package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxRedirects bounds how often a server may send on.
const maxRedirects = 5

// transport is shared, so that connections are used again. It asks for no compression,
// which would move offsets.
var transport = &http.Transport{
	Proxy:                 proxy,
	DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: allowed}).DialContext,
	ForceAttemptHTTP2:     true,
	DisableCompression:    true,
	MaxIdleConnsPerHost:   8,
	IdleConnTimeout:       time.Minute,
	TLSHandshakeTimeout:   15 * time.Second,
	ResponseHeaderTimeout: time.Minute,

	MaxResponseHeaderBytes: 64 << 10,
}

// proxy returns the environment's.
func proxy(req *http.Request) (*url.URL, error) {
	by, err := http.ProxyFromEnvironment(req)
	if err == nil && by != nil {
		err = throughProxy(req.URL)
	}
	return by, err
}

// throughProxy looks at addresses that are numbers. What names lead to only the proxy knows.
func throughProxy(u *url.URL) error {
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return permitted(ip)
	}
	return nil
}

// services are the addresses of such services that are not link-local: Amazon's and
// Google's over IPv6, Alibaba's, Oracle's, and the one from which Azure sets up machines.
var services = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("168.63.129.16"),
}

// allowed refuses the addresses at which clouds give out a machine's own credentials. It
// sees what names have led to, also after a redirect.
func allowed(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil //nolint:nilerr // not of the internet
	}
	return permitted(at.Addr())
}

// permitted compares without a zone, which an address of any kind may be written with.
func permitted(ip netip.Addr) error {
	if ip = ip.Unmap().WithZone(""); ip.IsLinkLocalUnicast() || slices.Contains(services, ip) {
		return finally("the address leads to %s, where machines find their own credentials, and is not read", ip)
	}
	return nil
}

// overHTTP asks a server of the web.
type overHTTP struct {
	address *url.URL
	client  *http.Client
}

func newHTTP(u *url.URL) *overHTTP {
	return &overHTTP{u, &http.Client{Transport: transport, CheckRedirect: redirect}}
}

func redirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return finally("the server sends on more than %d times: check the address", maxRedirects)
	case to.URL.Scheme != "http" && to.URL.Scheme != "https":
		return finally("the server sends on to an address of %.20q: give the file's own address", to.URL.Scheme)
	case via[len(via)-1].URL.Scheme == "https" && to.URL.Scheme != "https":
		return finally("the server sends on from https to http: give the file's own address")
	}
	// What the first server may know is no business of the next one.
	to.Header.Del("Referer")
	return nil
}

func (h *overHTTP) fetch(ctx context.Context, from, to int64, version string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.address.String(), nil)
	if err != nil {
		return nil, finally("the address is not complete: write SCHEME://HOST/PATH")
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "hopmesh")
	if to >= 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
		if version != "" && !strings.HasPrefix(version, "W/") {
			req.Header.Set("If-Range", version)
		}
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, h.unreached(err)
	}
	a, err := h.understand(resp, from, to)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return a, nil
}

// maxSaid bounds an error that may repeat what a server sent.
const maxSaid = 300

// unreached is the error of a request without an answer.
func (h *overHTTP) unreached(err error) error {
	err = plain(err)
	if isFinal(err) {
		return err
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return finally("there is no host %s: check the address", h.address.Hostname())
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return finally("%s does not prove who it is (%w): check the address, or have its certificate trusted on this machine", h.address.Host, e)
	}
	if text := err.Error(); len(text) > maxSaid {
		return fmt.Errorf("%s can't be reached: %s (and more)", h.address.Host, strings.ToValidUTF8(text[:maxSaid], ""))
	}
	return fmt.Errorf("%s can't be reached: %w", h.address.Host, err)
}

// plain is an error without the address, which may be signed.
func plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func (h *overHTTP) understand(resp *http.Response, from, to int64) (*answer, error) {
	a := &answer{body: resp.Body, total: resp.ContentLength, version: resp.Header.Get("ETag")}
	if a.version == "" {
		a.version = resp.Header.Get("Last-Modified")
	}
	shown := Show(h.address.String())
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		a.whole = true
		// Chunks, and frames of HTTP/2, say which is the last.
		a.endless = a.total < 0 && resp.ProtoMajor < 2 && len(resp.TransferEncoding) == 0
	case code == http.StatusPartialContent && to >= 0:
		var err error
		if a.total, err = totalOf(resp.Header.Get("Content-Range"), from); err != nil {
			return nil, finally("%s: %w", shown, err)
		}
	case code == http.StatusRequestedRangeNotSatisfiable && from == 0 && resp.Header.Get("Content-Range") == "bytes */0":
		a.total, a.body = 0, http.NoBody
		resp.Body.Close()
	case code == http.StatusRequestedRangeNotSatisfiable:
		return nil, finally("%s was changed while it was read: import it again when nothing writes to it", Base(shown))
	case code == http.StatusNotFound || code == http.StatusGone:
		return nil, finally("there is no file at %s (%d): check the address", shown, code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, finally("the server refuses to send %s (%d): give an address that is signed and has not expired, or a copy of the file", shown, code)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return nil, fmt.Errorf("the server answers %d", code)
	default:
		return nil, finally("the server answers %d for %s: check the address", code, shown)
	}
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return nil, finally("the server sends %s packed (%.20q), though it was asked not to: give an address of the file as it is", shown, packed)
	}
	return a, nil
}

// totalOf returns a file's size from a header such as "bytes 0-99/1234".
func totalOf(header string, from int64) (int64, error) {
	wrong := fmt.Errorf("the server does not say which part it sends (%.60q): give an address at another server, or a copy of the file", header)
	part, size, ok := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	first, last, two := strings.Cut(part, "-")
	total, err := strconv.ParseInt(size, 10, 64)
	if !ok || !two || err != nil || total < 0 {
		return 0, wrong
	}
	a, err := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	if err != nil || err2 != nil || a != from || b < a || b >= total {
		return 0, wrong
	}
	return total, nil
}

var _ io.ReaderAt = (*File)(nil)
