// Package web reads files that servers have, at any offset: by http, https, and from
// stores that speak S3. It knows nothing of what is in a file.
//
// What is read comes in parts of a file, some of which are kept and some of which are
// fetched ahead, within a bound of memory. A connection that is cut is made again where it
// ended. A file that has changed meanwhile is an error. The address may be anybody's: see
// DESIGN.md for what is refused.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
)

// Is reports whether a source is an address that this package reads, or would be if it were
// whole.
func Is(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	switch strings.ToLower(scheme) {
	case "http", "https", "s3", "gs":
		return ok
	}
	return false
}

// Base returns the last element of an address, without what stands behind a question mark.
func Base(address string) string {
	if u, err := url.Parse(address); err == nil {
		return path.Base(u.Path)
	}
	return "the address"
}

// Show returns an address for a sentence, without what may be secret.
func Show(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Join returns the address of a file in a folder. name is as List returns it: what has a
// meaning in addresses has none in it.
func Join(folder, name string) string {
	return strings.TrimSuffix(folder, "/") + "/" + url.PathEscape(name)
}

// Beside returns the address of a file in the folder of another, with what stands behind the
// question mark.
func Beside(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // whoever opens it says what is wrong
	}
	u.Path, u.RawPath = path.Join(path.Dir("/"+u.Path), name), ""
	return u.String()
}

type noteKey struct{}

// WithNote returns a context in which Open calls note with what the user should know.
func WithNote(ctx context.Context, note func(string)) context.Context {
	return context.WithValue(ctx, noteKey{}, note)
}

func noteIn(ctx context.Context, format string, args ...any) {
	if note, ok := ctx.Value(noteKey{}).(func(string)); ok {
		note(fmt.Sprintf(format, args...))
	}
}

// A fetcher asks a server for bytes of one file.
type fetcher interface {
	// fetch asks for the bytes from one offset to before another. version is of an earlier
	// answer, or "".
	fetch(ctx context.Context, from, to int64, version string) (*answer, error)
}

// An answer comes before the bytes do.
type answer struct {
	body    io.ReadCloser
	total   int64  // bytes of the file; -1: not known, of a whole file
	version string // changes with the file; "": not known
	endless bool   // nothing says where it ends, so a cut looks like its end
	whole   bool   // all of the file comes, whatever was asked for
}

// A final is an error that asking again does not change.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

func finally(format string, args ...any) error { return final{fmt.Errorf(format, args...)} }

func isFinal(err error) bool { return errors.As(err, new(final)) }

// fetcherOf returns what asks for a file.
func fetcherOf(address string) (fetcher, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		if strings.HasSuffix(u.Path, "/") || u.Path == "" {
			return nil, fmt.Errorf("%s is a folder, and files behind http can't be listed: give the address of a file", Show(address))
		}
		return newHTTP(u), nil
	}
	s, err := newStore(u)
	if err != nil {
		return nil, err
	}
	if s.key == "" {
		return nil, fmt.Errorf("%s names no object: give the address of a file or folder in the bucket", Show(address))
	}
	return s, nil
}

// parse checks an address.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("the address is not complete: write SCHEME://HOST/PATH")
	case !Is(address):
		return nil, fmt.Errorf("%s can't be read: give an address of http, https, s3 or gs", Show(address))
	case u.User != nil:
		return nil, fmt.Errorf("%s has a name or a password in it: give an address that is signed, or a path", Show(address))
	}
	u.Scheme = strings.ToLower(u.Scheme)
	return u, nil
}
