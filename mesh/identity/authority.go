package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

const (
	caNamePrefix = "hopmesh "
	caYears      = 100

	// backdate tells a certificate from the future from a clock that is somewhat behind the
	// signer's.
	backdate    = time.Hour
	defaultLife = 90 * 24 * time.Hour
	idSize      = 8 // bytes; twice as many hex digits
	maxCertSize = 4 << 10
)

// authority is the public side of a mesh's certificate authority. It signs nodes
// directly: there are no intermediates.
type authority struct {
	cert   *x509.Certificate
	pool   *x509.CertPool
	meshID string
	serial uint64            // how many have succeeded the founder's
	hash   [sha256.Size]byte // of the public key
}

func newAuthority(cert *x509.Certificate) (*authority, error) {
	meshID, ok := strings.CutPrefix(cert.Subject.CommonName, caNamePrefix)
	if !ok || !validID(meshID) || !cert.IsCA {
		return nil, fmt.Errorf("%w: it is not that of a mesh's authority", ErrCertificate)
	}
	// x509 does not verify a root's own signature. The digest in a token covers only
	// the key, so this check ties the rest of the certificate to it.
	if err := cert.CheckSignatureFrom(cert); err != nil {
		return nil, fmt.Errorf("%w: the authority did not sign its own: %w", ErrCertificate, err)
	}
	a := &authority{cert: cert, pool: x509.NewCertPool(), meshID: meshID, hash: hashKey(cert)}
	if s := cert.Subject.SerialNumber; s != "" {
		var err error
		if a.serial, err = strconv.ParseUint(s, 10, 64); err != nil || a.serial == 0 {
			return nil, fmt.Errorf("%w: its authority is number %.40q", ErrCertificate, s)
		}
	}
	a.pool.AddCert(cert)
	return a, nil
}

func hashKey(cert *x509.Certificate) [sha256.Size]byte {
	return sha256.Sum256(cert.RawSubjectPublicKeyInfo)
}

// createAuthority creates a certificate authority of a mesh, and its private key. The founder's has
// the number 0.
func createAuthority(meshID string, serial uint64, now time.Time) (*authority, ed25519.PrivateKey, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := authorityTemplate(meshID, serial, now)
	cert, err := issueAuthority(template, template, public, key)
	if err != nil {
		return nil, nil, err
	}
	a, err := newAuthority(cert)
	return a, key, err
}

func authorityTemplate(meshID string, serial uint64, now time.Time) *x509.Certificate {
	subject := pkix.Name{CommonName: caNamePrefix + meshID}
	if serial > 0 {
		subject.SerialNumber = strconv.FormatUint(serial, 10)
	}
	return &x509.Certificate{
		SerialNumber:          serialNumber(),
		Subject:               subject,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.AddDate(caYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
}

// issueAuthority makes the certificate for an authority's key: its own, or that of the one before.
func issueAuthority(template, parent *x509.Certificate, public ed25519.PublicKey, signer ed25519.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	return cert, nil
}

// sign issues a certificate for the node id and the key of the request.
func (a *authority) sign(key ed25519.PrivateKey, csr []byte, id string, now time.Time, life time.Duration) ([]byte, error) {
	public, err := parseCSR(csr)
	if err != nil {
		return nil, err
	}
	if !validID(id) {
		return nil, fmt.Errorf("%w: %.40q is no node's id", ErrRequest, id)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{CommonName: id},
		DNSNames:     []string{id},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of node %s: %w", id, err)
	}
	return der, nil
}

// verify returns the node id in leaf. It returns an error unless this authority issued
// leaf and it is valid for this use at this time.
func (a *authority) verify(leaf *x509.Certificate, use x509.ExtKeyUsage, now time.Time) (string, error) {
	id, err := nodeID(leaf)
	if err != nil {
		return "", err
	}
	// A certificate from the future shows that a clock was wrong when it was signed, or is
	// now. To refuse it would protect nothing, and part the mesh until that time has come.
	for _, begins := range []time.Time{leaf.NotBefore, a.cert.NotBefore} {
		if now.Before(begins) {
			now = begins
		}
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: a.pool, KeyUsages: []x509.ExtKeyUsage{use}, CurrentTime: now})
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case err == nil:
		return id, nil
	case isUnknown:
		return "", fmt.Errorf("node %s has no certificate of mesh %s: %w", id, a.meshID, ErrForeignMesh)
	case isInvalid && invalid.Reason == x509.Expired:
		return "", fmt.Errorf("node %s: %w: it ended at %s and it is %s here; check the clocks of both nodes",
			id, ErrExpired, leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return "", fmt.Errorf("node %s: %w: %w", id, ErrCertificate, err)
}

// nodeID returns the id that a certificate states, without verifying its signature.
func nodeID(leaf *x509.Certificate) (string, error) {
	if len(leaf.DNSNames) != 1 || !validID(leaf.DNSNames[0]) || leaf.Subject.CommonName != leaf.DNSNames[0] || leaf.IsCA {
		return "", fmt.Errorf("%w: it does not state one node id", ErrCertificate)
	}
	return leaf.DNSNames[0], nil
}

// parseChain parses the output of trust.chain from untrusted bytes.
func parseChain(chain [][]byte) ([]*x509.Certificate, error) {
	if len(chain) != 2 && len(chain) != maxChain {
		return nil, fmt.Errorf("%w: %d certificates instead of a node's and its authority's", ErrCertificate, len(chain))
	}
	certs := make([]*x509.Certificate, len(chain))
	for i, der := range chain {
		if len(der) > maxCertSize {
			return nil, fmt.Errorf("%w: it has %d bytes", ErrCertificate, len(der))
		}
		var err error
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
		}
	}
	return certs, nil
}

// newID returns a random id for a node or a mesh: lower-case hex, so that it is a valid
// DNS name.
func newID() string { return hex.EncodeToString(random(idSize)) }

func validID(id string) bool {
	return len(id) == 2*idSize && strings.Trim(id, "0123456789abcdef") == ""
}

// CheckID returns an error unless id is a valid node id. Newcomers choose their own,
// and certificates, addresses and the plan contain it.
func CheckID(id string) error {
	if !validID(id) {
		return fmt.Errorf("a node's id is %d hexadecimal digits in lower case, not %q", 2*idSize, id)
	}
	return nil
}

func serialNumber() *big.Int { return new(big.Int).SetBytes(append([]byte{1}, random(15)...)) }

func (a *authority) holds(key ed25519.PrivateKey) bool {
	public, ok := a.cert.PublicKey.(ed25519.PublicKey)
	return ok && public.Equal(key.Public())
}
