// Command hopmesh is the whole product: the daemon, and the client of daemons.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/hopmesh/hopmesh/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	// A write beyond the limit of a file's size fails, as on a full disk, and ends no daemon.
	signal.Ignore(syscall.SIGXFSZ)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Execute(ctx, cli.New(local(version), version), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
