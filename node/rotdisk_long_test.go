//go:build long

package node_test

import "testing"

func TestFlippedBitsInAHundredPlaces(t *testing.T) { flipEach(t, 100) }
