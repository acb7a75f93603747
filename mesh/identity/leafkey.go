package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

const (
	pemKey  = "PRIVATE KEY"
	pemCert = "CERTIFICATE"
)

// newLeafKey returns a new node key and a request to sign it.
func newLeafKey(id string) (ed25519.PrivateKey, []byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the node's key: %w", err)
	}
	csr, err := newCSR(key, id)
	return key, csr, err
}

func newCSR(key ed25519.PrivateKey, id string) ([]byte, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}, key)
	if err != nil {
		return nil, fmt.Errorf("make a signing request: %w", err)
	}
	return csr, nil
}

// parseCSR returns the key of an untrusted signing request, once it is proven that the
// sender holds the key. Everything else in the request is ignored.
func parseCSR(der []byte) (ed25519.PublicKey, error) {
	if len(der) > maxCertSize {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrRequest, len(der))
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	public, ok := csr.PublicKey.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: its key is %s instead of Ed25519", ErrRequest, csr.PublicKeyAlgorithm)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return public, nil
}

// CSRKeyHash returns the digest of a signing request's key, as PublicKeyHash does,
// after proving that the requester holds the key.
func CSRKeyHash(csr []byte) (string, error) {
	public, err := parseCSR(csr)
	if err != nil {
		return "", err
	}
	return publicKeyHash(public), nil
}

func publicKeyHash(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:])
}

// credential is a node's key with its certificate. It is immutable.
type credential struct {
	key    ed25519.PrivateKey
	leaf   *x509.Certificate
	issuer [sha256.Size]byte // the hash of the authority's key
}

// newCredential returns an error unless key and certificate belong together.
func newCredential(key ed25519.PrivateKey, leaf *x509.Certificate, issuer [sha256.Size]byte) (*credential, error) {
	public, ok := leaf.PublicKey.(ed25519.PublicKey)
	if !ok || !public.Equal(key.Public()) {
		return nil, fmt.Errorf("%w: it is not for this node's key", ErrCertificate)
	}
	return &credential{key: key, leaf: leaf, issuer: issuer}, nil
}

func (c *credential) marshal() ([]byte, error) {
	key, err := marshalKey(c.key)
	if err != nil {
		return nil, err
	}
	return append(key, pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: c.leaf.Raw})...), nil
}

func marshalKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// encodeKey encodes a key in PKCS #8.
func encodeKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return der, nil
}

// parseKey parses the output of encodeKey.
func parseKey(der []byte) (ed25519.PrivateKey, error) {
	k, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	key, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read a key: it is %T instead of Ed25519", k)
	}
	return key, nil
}

// parsePEM returns the contents of a PEM file. It returns an error unless the file has
// blocks of exactly these types in this order.
func parsePEM(b []byte, types ...string) ([][]byte, error) {
	var contents [][]byte
	for _, want := range types {
		var block *pem.Block
		block, b = pem.Decode(b)
		if block == nil || block.Type != want {
			return nil, fmt.Errorf("no %s where there should be one", want)
		}
		contents = append(contents, block.Bytes)
	}
	if block, _ := pem.Decode(b); block != nil {
		return nil, fmt.Errorf("a %s more than there should be", block.Type)
	}
	return contents, nil
}
