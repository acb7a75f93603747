package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A field that is there twice is a bad request.
func TestAFieldTwice(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"name":"g","name":"h"}`))
	var to struct {
		Name string `json:"name"`
	}
	if err := decode(httptest.NewRecorder(), r, &to); statusOf(err) != http.StatusBadRequest || to.Name != "" {
		t.Errorf("decoded to %+v: %v", to, err)
	}
}
