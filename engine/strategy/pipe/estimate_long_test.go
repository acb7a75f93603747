//go:build long

package pipe

import "testing"

func TestMemoryOfOtherModelsIsWhatWasForecast(t *testing.T) {
	memoryIsForecast(t, "gcn", "resgcn")
}
