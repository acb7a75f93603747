package web

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Beyond 2^63 bytes offsets would be negative.
func TestSizesThatNoFileHas(t *testing.T) {
	for _, size := range []int64{maxSize + 1, math.MaxInt64} {
		host := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-0/%d", size))
			w.WriteHeader(http.StatusPartialContent)
		}))
		f, err := Open(t.Context(), host+"/f.csv")
		if err == nil {
			f.Close()
		}
		if want := fmt.Sprintf("the server says that f.csv has %d bytes, which no file has: check the address", size); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// What a listing names can be opened, also if the name has what means something in addresses.
func TestNamesInListings(t *testing.T) {
	b := &bucket{key: "me", etag: `"a"`, objects: map[string][]byte{}}
	environment(t, start(t, b), "me")
	for i, name := range []string{"part-a%2Fb.parquet", "part-?.parquet", "part-#1.parquet", "part-100%.parquet", "part- +ü.parquet", ".."} {
		clear(b.objects)
		b.objects["g/"+name] = content(i + 1)
		list, err := List(t.Context(), "s3://data/g")
		if err != nil || len(list) != 1 || list[0].Name != name {
			t.Fatalf("%v, %v", list, err)
		}
		address := Join("s3://data/g", name)
		f, err := Open(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.Close(); f.Size() != int64(i+1) || name != ".." && Base(address) != name {
			t.Errorf("%s: %d bytes at %s", name, f.Size(), address)
		}
	}
}

// Nothing of an address of a store is left out in silence.
func TestWhatNamesNoObject(t *testing.T) {
	b := &bucket{key: "me", etag: `"a"`, objects: map[string][]byte{"x.csv": content(1), "x": content(1)}}
	environment(t, start(t, b), "me")
	for _, address := range []string{"s3://data/x.csv?versionId=secret", "s3://data/x#1.csv", "s3://data/x?"} {
		f, err := Open(t.Context(), address)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "goes on with ? or #") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A store that refuses, and never says why, holds nobody.
func TestStoreThatDoesNotExplain(t *testing.T) {
	was := explained
	explained = time.Millisecond
	t.Cleanup(func() { explained = was })
	environment(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})), "me")
	if _, err := Open(t.Context(), "s3://data/x.csv"); err == nil || !strings.Contains(err.Error(), "(AccessDenied)") {
		t.Error(err)
	}
}

// The addresses at which machines find their credentials, however they are written.
func TestAddressesOfCredentials(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254:80": false, "[::ffff:169.254.169.254]:80": false, "[fe80::1%lo]:80": false, "[fd00:ec2::254]:80": false, "[fd00:ec2::254%lo]:80": false,
		"[fd20:ce::254]:80": false, "100.100.100.200:80": false, "168.63.129.16:80": false, "192.0.0.192:80": false,
		"127.0.0.1:80": true, "10.0.0.1:80": true, "100.100.100.201:80": true, "[fd00:ec2::253]:80": true, "[2001:db8::1]:80": true,
	} {
		if err := allowed("tcp", address, nil); (err == nil) != want || err != nil && !isFinal(err) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A proxy is not asked for them either.
func TestProxyIsNotAskedForCredentials(t *testing.T) {
	for host, want := range map[string]bool{"169.254.169.254": false, "[fd00:ec2::254%25lo]": false, "192.0.2.1": true, "example.com": true} {
		u, err := url.Parse("http://" + host + "/x")
		if err != nil {
			t.Fatal(err)
		}
		if err := throughProxy(u); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// What a server says instead of an answer is repeated in part.
func TestMuchInsteadOfAnAnswer(t *testing.T) {
	for what, text := range map[string]string{"no answer": strings.Repeat("x", 50<<10) + "\r\n", "a long header": "HTTP/1.1 200 OK\r\nETag: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"} {
		host := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(text)) // the other side may have hung up
		}))
		_, err := Open(t.Context(), host+"/f.csv")
		if err == nil || len(err.Error()) > 600 || !strings.Contains(err.Error(), "check the network and the server") {
			t.Errorf("%s: %.700v", what, err)
		}
	}
}

// One answer that a store is busy, or that is cut off, ends neither a look nor a listing.
func TestLooksAndListingsAreRepeated(t *testing.T) {
	b := &bucket{key: "me", etag: `"a"`, objects: map[string][]byte{"g/x.csv": content(1)}}
	var asked atomic.Int64
	environment(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) % 3 {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			_, _ = io.WriteString(w, "<ListBucketResult><Contents>")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			b.ServeHTTP(w, r)
		}
	})), "me")
	if list, err := List(t.Context(), "s3://data/g"); err != nil || len(list) != 1 || asked.Load() != 3 {
		t.Errorf("%v after %d requests: %v", list, asked.Load(), err)
	}
	if is, err := IsFile(t.Context(), "s3://data/g/x.csv"); err != nil || !is {
		t.Errorf("%v, %v", is, err)
	}
	// One that stays busy is given up.
	environment(t, start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })), "me")
	if _, err := List(t.Context(), "s3://data/g"); err == nil || !strings.HasPrefix(err.Error(), "s3://data/g can't be read (the store answers 503") {
		t.Error(err)
	}
}

// Where nothing says how long a file is, a cut looks like its end, and the user is warned.
func TestFilesOfUnknownLength(t *testing.T) {
	for head, warned := range map[string]bool{
		"HTTP/1.0 200 OK\r\n\r\nabc": true, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc": true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n": false, "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc": false,
	} {
		host := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, head)
		}))
		var notes []string
		f, err := Open(WithNote(t.Context(), func(note string) { notes = append(notes, note) }), host+"/f.csv")
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		if f.Close(); f.Size() != 3 || strings.Contains(strings.Join(notes, "; "), "does not say how long f.csv is, and sent 3 bytes") != warned {
			t.Errorf("%q: %d bytes, %q", head, f.Size(), notes)
		}
	}
}
