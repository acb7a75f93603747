package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// A store is a bucket of a server that speaks S3, and an object in it.
type store struct {
	client      *minio.Core
	host        string
	bucket, key string
	anonymous   bool
	keys        string // where its credentials come from, for sentences
}

// newStore connects to nothing yet. Where the server is and who asks are the daemon's
// settings; the address says only which object.
func newStore(u *url.URL) (*store, error) {
	s := &store{bucket: u.Host, key: strings.TrimPrefix(u.Path, "/")}
	endpoint := "https://s3.amazonaws.com"
	options := &minio.Options{Transport: transport, MaxRetries: 2}
	var providers []credentials.Provider
	if u.Scheme == "gs" {
		endpoint = cmp.Or(os.Getenv("STORAGE_EMULATOR_HOST"), "https://storage.googleapis.com")
		options.Region = "auto"
		s.keys = "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, an HMAC key of Google's storage"
		providers = []credentials.Provider{&credentials.Static{Value: credentials.Value{
			AccessKeyID: os.Getenv("GS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("GS_SECRET_ACCESS_KEY"), SignerType: credentials.SignatureV4,
		}}}
	} else {
		own := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
		endpoint = cmp.Or(own, endpoint)
		s.keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"
		providers = []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
		if own == "" && !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
			// On a machine of Amazon's, what its role may.
			providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: time.Second}})
		}
		options.Region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("the endpoint in the daemon's environment is not complete: write http://HOST:PORT or https://HOST:PORT")
	}
	options.Secure, s.host = at.Scheme == "https", at.Host
	options.Creds = credentials.NewChainCredentials(providers)
	if value, err := options.Creds.GetWithContext(nil); err != nil || value.SignerType.IsAnonymous() || value.AccessKeyID == "" {
		options.Creds, s.anonymous = credentials.NewStatic("", "", "", credentials.SignatureAnonymous), true
	}
	if s.client, err = minio.NewCore(at.Host, options); err != nil {
		return nil, fmt.Errorf("the endpoint %s in the daemon's environment can't be used (%w): check it", at.Host, err)
	}
	return s, nil
}

func (s *store) fetch(ctx context.Context, from, to int64, version string) (*answer, error) {
	var o minio.GetObjectOptions
	if to >= 0 {
		if err := o.SetRange(from, to-1); err != nil {
			return nil, finally("read %s: %w", s.key, err)
		}
		if version != "" {
			if err := o.SetMatchETag(version); err != nil {
				return nil, finally("read %s: %w", s.key, err)
			}
		}
	}
	body, info, header, err := s.client.GetObject(ctx, s.bucket, s.key, o)
	if err != nil {
		if e := minio.ToErrorResponse(err); e.Code == "InvalidRange" && from == 0 && version == "" {
			return &answer{body: http.NoBody}, nil // an empty object has no first byte
		}
		return nil, s.explain(err)
	}
	a := &answer{body: body, total: info.Size, version: info.ETag}
	if part := header.Get("Content-Range"); part == "" {
		a.whole = true
	} else if a.total, err = totalOf(part, from); err != nil {
		body.Close()
		return nil, finally("%s: %w", s.key, err)
	}
	return a, nil
}

// explain says what an error of the store means.
func (s *store) explain(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return finally("there is no host %s: check the address, and the endpoint in the daemon's environment", e.Name)
	}
	if isFinal(err) {
		return plain(err)
	}
	e := minio.ToErrorResponse(err)
	switch e.Code {
	case "NoSuchKey":
		return finally("there is no %s in the bucket %s: check the address", s.key, s.bucket)
	case "NoSuchBucket", "InvalidBucketName":
		return finally("there is no bucket %.80q: check the address", s.bucket)
	case "PreconditionFailed":
		return finally("%s was changed while it was read: import it again when nothing writes to it", Base(s.key))
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed", "AllAccessDisabled", "Forbidden":
		if s.anonymous {
			return finally("%s in the bucket %s may not be read without credentials: set %s of the user that the daemon runs as, and start it again", s.key, s.bucket, s.keys)
		}
		return finally("the store refuses the daemon's credentials for %s in the bucket %s (%s): check %s", s.key, s.bucket, e.Code, s.keys)
	}
	if e.StatusCode >= 400 && e.StatusCode < 500 && e.StatusCode != http.StatusTooManyRequests && e.StatusCode != http.StatusRequestTimeout {
		return finally("the store answers %d (%.40q) for %s in the bucket %s: check the address", e.StatusCode, e.Code, s.key, s.bucket)
	}
	return fmt.Errorf("%s: %w", s.host, plain(err))
}

// maxEntries bounds what a folder is read for.
const maxEntries = 10_000

// An Entry is a file or a folder in a folder.
type Entry struct {
	Name   string
	Folder bool
}

// List lists a folder of a store. It is empty if there is none.
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
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var list []Entry
	for o := range s.client.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, s.explain(o.Err)
		}
		name := strings.TrimPrefix(o.Key, prefix)
		if name == "" {
			continue // the folder itself
		}
		if len(list) == maxEntries {
			return nil, fmt.Errorf("%s holds more than %d files: give the address of one", Show(address), maxEntries)
		}
		list = append(list, Entry{strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/")})
	}
	return list, nil
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
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = s.client.StatObject(ctx, s.bucket, s.key, minio.StatObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code == "NoSuchKey" {
		return false, nil
	}
	if err != nil {
		return false, s.explain(err)
	}
	return true, nil
}
