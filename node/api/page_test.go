package api

import (
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api/page"
)

// The page offers every model and preset that a forecast may be of.
func TestThePageOffersWhatCanBeForecast(t *testing.T) {
	quoted := func(names []string) string { return `["` + strings.Join(names, `", "`) + `"];` }
	for _, f := range page.Files() {
		if f.Path() != "/page/forecast.js" {
			continue
		}
		for _, want := range []string{"const presets = " + quoted(ForecastPresets()), "const models = " + quoted(Models())} {
			if !strings.Contains(string(f.Body), want) {
				t.Errorf("forecast.js lacks %s", want)
			}
		}
		return
	}
	t.Error("there is no forecast.js")
}
