package web

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzStore gives what a store answers to all that takes it apart.
func FuzzStore(f *testing.F) {
	f.Add(`<ListBucketResult><Contents><Key>g/a</Key></Contents><CommonPrefixes><Prefix>g/b/</Prefix></CommonPrefixes></ListBucketResult>`, 200, "bytes 0-9/10")
	f.Add(`<Error><Code>NoSuchKey</Code></Error>`, 404, "bytes */0")
	f.Add(`<Error>`, 500, "")
	f.Fuzz(func(t *testing.T, body string, status int, part string) {
		s := &store{bucket: "b", key: "g", endpoint: &url.URL{Scheme: "http", Host: "h"}, anonymous: true}
		s.client = &http.Client{Transport: tripper(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Range": {part}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		})}
		if page, err := s.page(t.Context(), nil); err == nil && len(page.Contents)+len(page.CommonPrefixes) > len(body) {
			t.Errorf("%d entries of %d bytes", len(page.Contents)+len(page.CommonPrefixes), len(body))
		}
		a, err := s.fetch(t.Context(), 0, 10, "")
		if (a == nil) == (err == nil) {
			t.Errorf("%v, %v", a, err)
		}
		if err == nil && !a.whole && a.total < 0 {
			t.Errorf("a file of %d bytes", a.total)
		}
	})
}
