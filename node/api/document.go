package api

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// document describes the API, as gzip: it is a small part as long as openapi.json. A test makes
// both from the routes and compares, so that the program needs no generator.
//
//go:embed openapi.json.gz
var document []byte

func documentRoutes() []route {
	return []route{{"GET /openapi.json", anybody, "This document.", nil, serves(mediaJSON, serveDocument)}}
}

func serveDocument(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", mediaJSON)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(document)))
		_, _ = w.Write(document) // an error means that the client went away
		return
	}
	plain, err := unpackDocument()
	if err != nil {
		fail(w, err)
		return
	}
	_, _ = w.Write(plain) // as above
}

// unpackDocument returns the text of openapi.json.
func unpackDocument() ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// acceptsGzip reports whether the lines of Accept-Encoding name gzip, with a weight above 0.
func acceptsGzip(lines []string) bool {
	for one := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		name, weight, weighted := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(weight)), "q="), 64)
		return err == nil && q > 0
	}
	return false
}
