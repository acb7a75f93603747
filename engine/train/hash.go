package train

import (
	"crypto/sha256"
	"encoding/hex"
)

// hash is the SHA-256 of the weights: 32-bit floats, little-endian, in the order of
// the model's params. It leaves a copy of them in host.
func (t *learner) hash() string {
	t.device.Read32(t.host, t.weights)
	sum := sha256.Sum256(bytesOf(t.host))
	return hex.EncodeToString(sum[:])
}
