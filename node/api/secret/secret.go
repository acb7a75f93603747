// Package secret keeps the secrets of APIs that are served on loopback. Any user of a machine
// reaches loopback, so whoever asks for changes there must know what only the user that runs
// the daemon can read: a file in that user's runtime directory, named after the address.
package secret

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// New returns a new secret.
func New() string {
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

const size = 32 // bytes, twice as many digits

// Save writes the secret of an address where Find finds it, and returns the file's path. A
// file that an earlier daemon left there is replaced.
func Save(addr netip.AddrPort, secret string) (string, error) {
	var errs []error
	for _, dir := range dirs() {
		path := filepath.Join(dir, name(addr))
		err := prepare(dir)
		if err == nil {
			err = write(path, secret)
		}
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("keep the secret for changes through %s: %w", addr, errors.Join(errs...))
}

// Remove removes the file that Save wrote, unless another daemon has replaced it.
func Remove(path, secret string) {
	if got, err := read(path); err == nil && got == secret {
		_ = os.Remove(path)
	}
}

// Find returns the secrets that may be those for changes through an address, HOST:PORT, the
// likeliest first, and the address that they belong to: "localhost" may mean two, and a secret
// is shown to its own daemon alone. A daemon that was killed may have left one where the next
// did not look. It returns none if this user has none.
func Find(addr string) (secrets []string, at string) {
	for _, a := range meant(addr) {
		for _, dir := range dirs() {
			if private(dir) != nil {
				continue
			}
			if got, err := read(filepath.Join(dir, name(a))); err == nil && !slices.Contains(secrets, got) {
				secrets = append(secrets, got)
			}
		}
		if len(secrets) > 0 {
			return secrets, a.String()
		}
	}
	return nil, ""
}

// meant lists the addresses on loopback that HOST:PORT may mean.
func meant(addr string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	if strings.EqualFold(host, "localhost") {
		return []netip.AddrPort{
			netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(n)), netip.AddrPortFrom(netip.IPv6Loopback(), uint16(n)),
		}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() {
		return nil
	}
	return []netip.AddrPort{netip.AddrPortFrom(ip.Unmap(), uint16(n))}
}

func name(addr netip.AddrPort) string {
	return "api-" + netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()).String()
}

// dirs lists where secrets may be, the best place first. A service and a login of the same
// user may not both have $XDG_RUNTIME_DIR, so all are looked at.
func dirs() []string {
	var list []string
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) && owned(run) == nil {
		list = append(list, filepath.Join(run, "hopmesh"))
	}
	return append(list, filepath.Join(os.TempDir(), fmt.Sprintf("hopmesh-%d", os.Geteuid())))
}

func prepare(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return private(dir)
}

// private returns an error unless dir is a folder of this user that no other may open. In
// the folder for temporary files anybody may have made it, or a link.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is no folder that is closed to other users: remove it", dir)
	}
	return owned(dir)
}

func owned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}

func write(path, secret string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // for this user alone
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

var errNone = errors.New("it holds no secret")

func read(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*size+2))
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(b), "\n")
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != size {
		return "", errNone
	}
	return text, nil
}
