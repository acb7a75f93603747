package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestAccessRequests(t *testing.T) {
	for _, good := range []AccessRequest{{Scope: "read"}, {Scope: "operate", TTL: "24h", Name: "naïve CI"}} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for says, bad := range map[string]AccessRequest{
		"names no scope":            {},
		`no scope "all"`:            {Scope: "all"},
		"70 bytes":                  {Scope: "read", Name: strings.Repeat("x", 70)},
		`"a\tb" has a character`:    {Scope: "read", Name: "a\tb"},
		`"a\xff" has a character`:   {Scope: "read", Name: "a\xff"},
		`can't live for "-1h": giv`: {Scope: "read", TTL: "-1h"},
	} {
		if err := bad.Check(); statusOf(err) != http.StatusBadRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v does not say %q", bad, err, says)
		}
	}
}
