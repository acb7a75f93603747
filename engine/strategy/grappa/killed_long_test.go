//go:build long

package grappa_test

import "testing"

func TestAnyNodeMayBeKilledAtManyMoments(t *testing.T) { killAny(t, 4, 6, 4) }
