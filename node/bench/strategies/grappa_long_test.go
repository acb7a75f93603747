//go:build long

package strategies

import "testing"

func TestGrappaOnASmallMeshWithTwoWidths(t *testing.T) {
	grappaOnASmallMesh(t, 8, 24)
}
