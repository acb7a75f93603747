// Package pin makes clients of the API speak with nodes of one mesh only: the one that their token
// pins by the digest of its authority's key. What tokens and certificates are is package identity's;
// clients link none of the daemon, so what they need of it is here, and tests compare the two.
package pin

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrToken means that a token is malformed.
	ErrToken = errors.New("the API token is not usable")
	// ErrForeign means that a peer shows no certificate of the mesh.
	ErrForeign = errors.New("it is not of the mesh that the token is of")
	// ErrExpired means that the peer's certificate has expired by this machine's clock.
	ErrExpired = errors.New("its certificate has expired by the clock of this machine: check the clocks of both")
)

const (
	prefix = "hma1-"
	secret = 20 // bytes
	check  = 2
	length = sha256.Size + secret + check
	// maxChain is the longest chain that a node shows: its certificate, its authority's, and, while
	// the one before is still trusted, what that one says of the new, and its own.
	maxChain = 4
	protocol = "http/1.1"
)

var text = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Authority returns the digest of the authority's key that a token pins, and the token as it is
// sent.
func Authority(token string) (digest [sha256.Size]byte, sent string, err error) {
	const hint = "`hopmesh api token create` on any node of the mesh makes one"
	token = strings.ToLower(strings.TrimSpace(token))
	if !strings.HasPrefix(token, prefix) {
		return digest, "", fmt.Errorf("%w: it does not start with %q; %s", ErrToken, prefix, hint)
	}
	if want := len(prefix) + text.EncodedLen(length); len(token) != want {
		return digest, "", fmt.Errorf("%w: it has %d characters instead of %d; copy it again, whole", ErrToken, len(token), want)
	}
	b, err := text.DecodeString(token[len(prefix):])
	if err != nil || len(b) != length {
		return digest, "", fmt.Errorf("%w: it has a character that no token has; copy it again", ErrToken)
	}
	sum := sha256.Sum256(append([]byte(prefix), b[:length-check]...))
	if [check]byte(sum[:]) != [check]byte(b[length-check:]) {
		return digest, "", fmt.Errorf("%w: a character in it is wrong; copy it again", ErrToken)
	}
	return [sha256.Size]byte(b), token, nil
}

// TLS returns the configuration of a client: the peer must show a certificate of the authority whose
// key has this digest, or of the one that it vouches for as its successor.
func TLS(authority [sha256.Size]byte) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true, // a resumed session would not be checked against what was said since
		InsecureSkipVerify:     true, //nolint:gosec // VerifyConnection checks instead: nodes have ids, not names
		VerifyConnection: func(cs tls.ConnectionState) error {
			return verify(cs.PeerCertificates, authority, time.Now())
		},
	}
}

// verify returns an error unless the first certificate of a chain is of the authority.
func verify(chain []*x509.Certificate, authority [sha256.Size]byte, now time.Time) error {
	if len(chain) < 2 || len(chain) > maxChain {
		return ErrForeign
	}
	root := pinned(chain[1:], authority)
	if root == nil {
		return ErrForeign
	}
	err := issued(chain[0], root, now)
	for _, link := range chain[1:] {
		if err == nil {
			break
		}
		// The authority's certificate for the key of its successor.
		if link.IsCA && link.Subject.CommonName == root.Subject.CommonName && link.CheckSignatureFrom(root) == nil {
			if by := issued(chain[0], link, now); by == nil || errors.Is(err, ErrForeign) {
				err = by
			}
		}
	}
	return err
}

// pinned returns the authority's own certificate among others, or nil. The digest covers its key
// only, so its signature ties the rest to that.
func pinned(others []*x509.Certificate, authority [sha256.Size]byte) *x509.Certificate {
	for _, c := range others {
		if c.IsCA && sha256.Sum256(c.RawSubjectPublicKeyInfo) == authority && c.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

// issued returns an error unless an authority has issued the certificate of a node, which is valid
// now. One from the future counts: it says that a clock is wrong, or was.
func issued(leaf, by *x509.Certificate, now time.Time) error {
	if leaf.IsCA {
		return ErrForeign
	}
	for _, begins := range []time.Time{leaf.NotBefore, by.NotBefore} {
		if now.Before(begins) {
			now = begins
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(by)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, CurrentTime: now})
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is && invalid.Reason == x509.Expired {
		return ErrExpired
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return nil
}
