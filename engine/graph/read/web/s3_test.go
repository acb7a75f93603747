package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A bucket is a small server that speaks S3, for one key.
type bucket struct {
	objects map[string][]byte
	key     string
	etag    string
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fail := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
	}
	signed := r.Header.Get("Authorization")
	switch {
	case b.key == "" && signed == "":
	case signed == "":
		fail(http.StatusForbidden, "AccessDenied")
		return
	case !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential="+b.key+"/"):
		fail(http.StatusForbidden, "InvalidAccessKeyId")
		return
	case signature(r, b.key) != signed[strings.LastIndex(signed, "=")+1:]:
		fail(http.StatusForbidden, "SignatureDoesNotMatch")
		return
	}
	path, inBucket := strings.CutPrefix(r.URL.Path, "/data/")
	if !inBucket {
		fail(http.StatusNotFound, "NoSuchBucket")
		return
	}
	if q := r.URL.Query(); q.Has("list-type") {
		fmt.Fprint(w, `<ListBucketResult><Name>data</Name><IsTruncated>false</IsTruncated>`)
		folders := map[string]bool{}
		for name := range b.objects {
			rest, under := strings.CutPrefix(name, q.Get("prefix"))
			folder, _, deep := strings.Cut(rest, "/")
			switch {
			case !under:
			case deep && !folders[folder]:
				folders[folder] = true
				fmt.Fprintf(w, `<CommonPrefixes><Prefix>%s%s/</Prefix></CommonPrefixes>`, q.Get("prefix"), folder)
			case !deep:
				fmt.Fprintf(w, `<Contents><Key>%s</Key><LastModified>2020-01-01T00:00:00.000Z</LastModified><Size>%d</Size></Contents>`, name, len(b.objects[name]))
			}
		}
		fmt.Fprint(w, `</ListBucketResult>`)
		return
	}
	content, in := b.objects[path]
	if !in {
		fail(http.StatusNotFound, "NoSuchKey")
		return
	}
	if want := r.Header.Get("If-Match"); want != "" && want != b.etag {
		fail(http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	w.Header().Set("ETag", b.etag)
	w.Header().Set("Last-Modified", time.Unix(1, 0).UTC().Format(http.TimeFormat))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// signature computes version 4 of Amazon's signatures of a request as it arrived.
func signature(r *http.Request, secret string) string {
	field := func(name string) string {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), name+"=")
		value, _, _ := strings.Cut(rest, ",")
		return value
	}
	names := strings.Split(field("SignedHeaders"), ";")
	request := r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20") + "\n"
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.Host
		}
		request += name + ":" + strings.TrimSpace(value) + "\n"
	}
	request += "\n" + strings.Join(names, ";") + "\n" + r.Header.Get("X-Amz-Content-Sha256")
	scope := strings.SplitN(field("Credential"), "/", 2)[1]
	key := []byte("AWS4" + secret)
	mac := func(text string) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		key = h.Sum(nil)
	}
	for part := range strings.SplitSeq(scope, "/") {
		mac(part)
	}
	mac(fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", r.Header.Get("X-Amz-Date"), scope, sha256.Sum256([]byte(request))))
	return hex.EncodeToString(key)
}

// environment sets the daemon's environment.
func environment(t *testing.T, endpoint, key string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // no credentials of the user's
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_S3": "", "AWS_REGION": "us-east-1", "AWS_SHARED_CREDENTIALS_FILE": "", "AWS_PROFILE": "",
		"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": key, "AWS_SESSION_TOKEN": "", "AWS_ACCESS_KEY": "", "AWS_SECRET_KEY": "",
		"STORAGE_EMULATOR_HOST": endpoint, "GS_ACCESS_KEY_ID": key, "GS_SECRET_ACCESS_KEY": key,
	} {
		t.Setenv(name, value)
	}
}

func TestStores(t *testing.T) {
	b := &bucket{key: "me", etag: `"a"`, objects: map[string][]byte{"g/edges.csv": content(3*blockBytes + 1), "g/sub/x": nil, "empty": {}}}
	environment(t, start(t, b), "me")
	for _, scheme := range []string{"s3", "gs"} {
		f := open(t, scheme+"://data/g/edges.csv")
		if got, err := all(f); err != nil || !bytes.Equal(got, b.objects["g/edges.csv"]) {
			t.Errorf("%s: %d bytes: %v", scheme, len(got), err)
		}
		if f := open(t, scheme+"://data/empty"); f.Size() != 0 {
			t.Errorf("%s: an empty object has %d bytes", scheme, f.Size())
		}
		for _, folder := range []string{"g", "g/"} {
			if got, err := List(t.Context(), scheme+"://data/"+folder); err != nil || fmt.Sprint(got) != "[{edges.csv false} {sub true}]" {
				t.Errorf("%s: %v, %v", scheme, got, err)
			}
		}
		for name, want := range map[string]bool{"g/edges.csv": true, "g": false, "g/": false} {
			if got, err := IsFile(t.Context(), scheme+"://data/"+name); err != nil || got != want {
				t.Errorf("%s: %s is a file: %v, %v", scheme, name, got, err)
			}
		}
	}
	odd := "g/a b+ü&=(1).csv"
	b.objects[odd] = content(10)
	if got, err := all(open(t, "s3://data/g/a%20b+%C3%BC&=(1).csv")); err != nil || len(got) != 10 {
		t.Errorf("%s: %d bytes: %v", odd, len(got), err)
	}
	f := open(t, "s3://data/g/edges.csv")
	b.etag = `"b"`
	if _, err := all(f); err == nil || err.Error() != "edges.csv was changed while it was read: import it again when nothing writes to it" {
		t.Error(err)
	}
}

func TestWhatStoresRefuse(t *testing.T) {
	b := &bucket{key: "me", etag: `"a"`, objects: map[string][]byte{"edges.csv": content(100)}}
	host := start(t, b)
	for name, c := range map[string]struct{ key, endpoint, address, want string }{
		"a wrong key":    {"you", host, "s3://data/edges.csv", "the store refuses the daemon's credentials for edges.csv in the bucket data (InvalidAccessKeyId): check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"},
		"a wrong secret": {"me", host, "s3://data/edges.csv", "the store refuses the daemon's credentials for edges.csv in the bucket data (SignatureDoesNotMatch)"},
		"no key":         {"", host, "s3://data/edges.csv", "edges.csv in the bucket data may not be read without credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials of the user"},
		"no key of gs":   {"", host, "gs://data/edges.csv", "may not be read without credentials: set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY"},
		"no object":      {"me", host, "s3://data/nodes.csv", "there is no nodes.csv in the bucket data: check the address"},
		"no bucket":      {"me", host, "s3://other/edges.csv", `there is no bucket "other": check the address`},
		"no key in it":   {"me", host, "s3://data", "s3://data names no object: give the address of a file or folder in the bucket"},
		"a wrong host":   {"me", "http://no-such-host.invalid:9000", "s3://data/edges.csv", "there is no host no-such-host.invalid: check the address, and the endpoint in the daemon's environment"},
		"half a host":    {"me", "no-such-host:9000", "s3://data/edges.csv", "the endpoint in the daemon's environment is not complete: write http://HOST:PORT or https://HOST:PORT"},
		"credentials'":   {"me", "http://169.254.169.254", "s3://data/edges.csv", "the address leads to 169.254.169.254, where machines find their own credentials"},
		"a wrong bucket": {"me", host, "s3://D/edges.csv", `there is no bucket "D": check the address`},
	} {
		environment(t, c.endpoint, c.key)
		if name == "a wrong secret" {
			t.Setenv("AWS_SECRET_ACCESS_KEY", "other")
		}
		f, err := Open(t.Context(), c.address)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// Without a key, what is public is read.
	b.key = ""
	environment(t, host, "")
	if got, err := all(open(t, "s3://data/edges.csv")); err != nil || len(got) != 100 {
		t.Error(err)
	}
}

// A bucket of Amazon's says which region it is in, and is asked there.
func TestRegions(t *testing.T) {
	environment(t, "", "me")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for address, want := range map[string]string{"s3://data/a b": "https://data.s3.eu-central-1.amazonaws.com/a%20b", "s3://da.ta/k": "https://s3.eu-central-1.amazonaws.com/da.ta/k"} {
		s, err := newStore(mustParse(t, address))
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		s.client.Transport = tripper(func(r *http.Request) *http.Response {
			asked = append(asked, r.URL.String()+" "+strings.Split(r.Header.Get("Authorization"), "/")[2])
			w := httptest.NewRecorder()
			if w.Header().Set("X-Amz-Bucket-Region", "eu-central-1"); len(asked) == 1 {
				w.WriteHeader(http.StatusMovedPermanently)
			} else {
				w.Header().Set("Content-Range", "bytes 0-0/1")
				w.WriteHeader(http.StatusPartialContent)
			}
			return w.Result()
		})
		a, err := s.fetch(t.Context(), 0, 1, "")
		if err != nil || a.total != 1 || len(asked) != 2 || asked[1] != want+" eu-central-1" || !strings.Contains(asked[0], "us-east-1") {
			t.Errorf("%q, %+v, %v", asked, a, err)
		}
	}
}

type tripper func(*http.Request) *http.Response

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
