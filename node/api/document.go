package api

import (
	_ "embed"
	"net/http"
)

// document describes the API. A test makes it from the routes and compares, so that the program
// needs no generator.
//
//go:embed openapi.json
var document []byte

func documentRoutes() []route {
	return []route{{"GET /openapi.json", anybody, "This document.", nil, serves(mediaJSON, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaJSON)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(document) // an error means that the client went away
	})}}
}
