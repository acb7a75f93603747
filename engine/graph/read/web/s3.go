package web

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// A store is a bucket of a server that speaks S3, and an object in it.
type store struct {
	client      *http.Client
	creds       *credentials.Credentials
	endpoint    *url.URL // nil: Amazon's, of the bucket's region
	bucket, key string
	anonymous   bool
	keys        string // where its credentials come from, for sentences

	mu     sync.Mutex
	region string
}

// newStore connects to nothing yet. Where the server is and who asks are the daemon's
// settings; the address says only which object.
func newStore(u *url.URL) (*store, error) {
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, finally("%s goes on with ? or #, which name no object: leave that out, or write %%3F or %%23 if it is in the object's name", Show(u.String()))
	}
	s := &store{bucket: u.Host, key: strings.TrimPrefix(u.Path, "/")}
	// Where a store sends on to is not asked: that is another server, which would be sent a signature.
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var endpoint string
	var providers []credentials.Provider
	if u.Scheme == "gs" {
		endpoint, s.region = cmp.Or(os.Getenv("STORAGE_EMULATOR_HOST"), "https://storage.googleapis.com"), "auto"
		s.keys = "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, an HMAC key of Google's storage"
		providers = []credentials.Provider{&credentials.Static{Value: credentials.Value{
			AccessKeyID: os.Getenv("GS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("GS_SECRET_ACCESS_KEY"), SignerType: credentials.SignatureV4,
		}}}
	} else {
		endpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
		s.region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
		s.keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"
		providers = []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
		if endpoint == "" && !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
			// On a machine of Amazon's, what its role may.
			providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: time.Second}})
		}
	}
	if err := s3utils.CheckValidBucketName(s.bucket); err != nil {
		return nil, s.noBucket()
	}
	if endpoint != "" {
		at, err := url.Parse(endpoint)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return nil, errors.New("the endpoint in the daemon's environment is not complete: write http://HOST:PORT or https://HOST:PORT")
		}
		s.endpoint = at
	}
	s.creds = credentials.NewChainCredentials(providers)
	value, err := s.creds.GetWithContext(nil)
	if err != nil {
		return nil, fmt.Errorf("get the daemon's credentials (%w): check %s", err, s.keys)
	}
	s.anonymous = value.SignerType.IsAnonymous() || value.AccessKeyID == ""
	return s, nil
}

func (s *store) noBucket() error {
	return finally("there is no bucket %.80q: check the address", s.bucket)
}

// url returns the address of a key and the region that it is in. Amazon's buckets have
// hosts of their own, unless dots in their names keep certificates from matching.
func (s *store) url(key string, query url.Values) (*url.URL, string) {
	s.mu.Lock()
	region := s.region
	s.mu.Unlock()
	u := url.URL{Path: "/" + key, RawQuery: query.Encode()}
	switch {
	case s.endpoint != nil:
		u.Scheme, u.Host, u.Path = s.endpoint.Scheme, s.endpoint.Host, strings.TrimSuffix(s.endpoint.Path, "/")+"/"+s.bucket+u.Path
	case strings.Contains(s.bucket, "."):
		u.Scheme, u.Host, u.Path = "https", "s3."+region+".amazonaws.com", "/"+s.bucket+u.Path
	default:
		u.Scheme, u.Host = "https", s.bucket+".s3."+region+".amazonaws.com"
	}
	u.RawPath = s3utils.EncodePath(u.Path) // as the signature has it
	return &u, region
}

// ask sends a request, once more if the bucket turns out to be in another region.
func (s *store) ask(ctx context.Context, method, key string, query url.Values, header http.Header) (*http.Response, error) {
	for again := false; ; again = true {
		u, region := s.url(key, query)
		req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
		if err != nil {
			return nil, finally("read %s: the address is not complete: check it", s.key)
		}
		req.Header = header.Clone()
		req.Header.Set("Accept-Encoding", "identity")
		req.Header.Set("User-Agent", "hopmesh")
		if !s.anonymous {
			v, err := s.creds.GetWithContext(nil)
			if err != nil {
				return nil, fmt.Errorf("get the daemon's credentials: %w", err)
			}
			req.Header.Set("X-Amz-Content-Sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") // of no body
			req = signer.SignV4(*req, v.AccessKeyID, v.SecretAccessKey, v.SessionToken, region)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			return nil, s.unreached(u, err)
		}
		if is := resp.Header.Get("X-Amz-Bucket-Region"); resp.StatusCode >= 300 && !again && s.endpoint == nil && is != region && regionName.MatchString(is) {
			resp.Body.Close()
			s.mu.Lock()
			s.region = is
			s.mu.Unlock()
			continue
		}
		return resp, nil
	}
}

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

func (s *store) unreached(u *url.URL, err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return finally("there is no host %s: check the address, and the endpoint in the daemon's environment", u.Hostname())
	}
	return (&overHTTP{address: u}).unreached(err)
}

func (s *store) fetch(ctx context.Context, from, to int64, version string) (*answer, error) {
	header := http.Header{}
	if to >= 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
		if version != "" {
			header.Set("If-Match", version)
		}
	}
	resp, err := s.ask(ctx, http.MethodGet, s.key, nil, header)
	if err != nil {
		return nil, err
	}
	a := &answer{body: resp.Body, total: resp.ContentLength, version: resp.Header.Get("ETag")}
	switch resp.StatusCode {
	case http.StatusOK:
		a.whole = true
		return a, nil
	case http.StatusPartialContent:
		if a.total, err = totalOf(resp.Header.Get("Content-Range"), from); err != nil {
			resp.Body.Close()
			return nil, finally("%s: %w", s.key, err)
		}
		return a, nil
	}
	err = s.explain(resp)
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && version == "" {
		return &answer{body: http.NoBody}, nil // an empty object has no first byte
	}
	return nil, err
}

// explained is how long a store may take to say what is wrong, once it has said that.
var explained = 10 * time.Second

// explain says what an answer that is an error means, and closes it.
func (s *store) explain(resp *http.Response) error {
	defer resp.Body.Close()
	// It may never come, and may come byte by byte.
	timer := time.AfterFunc(explained, func() { resp.Body.Close() })
	defer timer.Stop()
	var e struct{ Code string }
	if xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&e) != nil || e.Code == "" {
		e.Code = map[int]string{403: "AccessDenied", 401: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed"}[resp.StatusCode]
	}
	switch e.Code {
	case "NoSuchKey":
		return finally("there is no %s in the bucket %s: check the address", s.key, s.bucket)
	case "NoSuchBucket", "InvalidBucketName":
		return s.noBucket()
	case "PreconditionFailed":
		return finally("%s was changed while it was read: import it again when nothing writes to it", path.Base(s.key))
	}
	switch code := resp.StatusCode; {
	case (code == http.StatusForbidden || code == http.StatusUnauthorized || e.Code == "ExpiredToken" || e.Code == "InvalidToken") && s.anonymous:
		return finally("%s in the bucket %s may not be read without credentials: set %s of the user that the daemon runs as, and start it again", cmp.Or(s.key, "what is"), s.bucket, s.keys)
	case code == http.StatusForbidden || code == http.StatusUnauthorized || e.Code == "ExpiredToken" || e.Code == "InvalidToken":
		return finally("the store refuses the daemon's credentials for %s in the bucket %s (%.40s): check %s", cmp.Or(s.key, "what is"), s.bucket, e.Code, s.keys)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return fmt.Errorf("the store answers %d (%.40s)", code, e.Code)
	}
	return finally("the store answers %d (%.40q) for %s in the bucket %s: check the address", resp.StatusCode, e.Code, s.key, s.bucket)
}

var errSilent = errors.New("the store did not answer within a minute: check the network and the server, and import again")

// maxEntries bounds what a folder is read for, and maxPage the bytes of a page of it.
const (
	maxEntries = 10_000
	maxPage    = 8 << 20
)

// An Entry is a file or a folder in a folder.
type Entry struct {
	Name   string
	Folder bool
}

// List lists a folder of a store. The list of a missing folder is empty.
func List(ctx context.Context, address string) ([]Entry, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "s3" && u.Scheme != "gs" {
		return nil, fmt.Errorf("%s is a folder, and files behind http can't be listed: give the address of a file", Show(address))
	}
	s, err := newStore(u)
	if err != nil {
		return nil, err
	}
	prefix := s.key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errSilent)
	defer cancel()
	query := url.Values{"list-type": {"2"}, "delimiter": {"/"}, "prefix": {prefix}}
	var list []Entry
	for {
		var page listing
		err := persist(ctx, Show(address), func() (_ bool, err error) {
			page, err = s.page(ctx, query)
			return false, err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(o.Key, prefix); name != "" && !strings.Contains(name, "/") { // not the folder itself
				list = append(list, Entry{name, false})
			}
		}
		for _, f := range page.CommonPrefixes {
			if name := strings.Trim(strings.TrimPrefix(f.Prefix, prefix), "/"); name != "" {
				list = append(list, Entry{name, true})
			}
		}
		if len(list) > maxEntries {
			return nil, fmt.Errorf("%s holds more than %d files: give the address of one", Show(address), maxEntries)
		}
		if !page.IsTruncated || page.NextContinuationToken == "" || page.NextContinuationToken == query.Get("continuation-token") {
			return list, nil
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

type listing struct {
	Contents              []struct{ Key string }
	CommonPrefixes        []struct{ Prefix string }
	IsTruncated           bool
	NextContinuationToken string
}

func (s *store) page(ctx context.Context, query url.Values) (page listing, err error) {
	resp, err := s.ask(ctx, http.MethodGet, "", query, http.Header{})
	if err != nil {
		return page, err
	}
	if resp.StatusCode != http.StatusOK {
		return page, s.explain(resp)
	}
	defer resp.Body.Close()
	if err := xml.NewDecoder(io.LimitReader(resp.Body, maxPage)).Decode(&page); err != nil {
		return page, fmt.Errorf("the list of what is in the bucket %s: %w", s.bucket, err)
	}
	return page, nil
}

// IsFile reports whether a store has an object at an address. All that is behind http is
// taken for a file.
func IsFile(ctx context.Context, address string) (bool, error) {
	u, err := parse(address)
	if err != nil || u.Scheme == "http" || u.Scheme == "https" {
		return err == nil, err
	}
	s, err := newStore(u)
	if err != nil || s.key == "" || strings.HasSuffix(s.key, "/") {
		return false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errSilent)
	defer cancel()
	is := false
	err = persist(ctx, Show(address), func() (bool, error) {
		resp, err := s.ask(ctx, http.MethodHead, s.key, nil, http.Header{})
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return false, nil
		}
		if resp.StatusCode != http.StatusOK {
			return false, s.explain(resp)
		}
		is = true
		return false, nil
	})
	return is, err
}
