package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/cli/usage"
	"github.com/hopmesh/hopmesh/node/shape"
)

// shaped runs an agent over a socket with a limited rate and a delay.
func shaped(ctx context.Context, cfg cli.ShapedConfig, version string, stdout, stderr io.Writer) (err error) {
	addr, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return usage.Wrap(fmt.Errorf("--listen %s is not an address to listen on: %w", cfg.Listen, err))
	}
	socket, err := net.ListenUDP("udp", addr)
	if err != nil {
		return fmt.Errorf("listen on UDP %s: %w", cfg.Listen, err)
	}
	conn := shape.Wrap(socket, shape.Link{Rate: cfg.Rate, Delay: cfg.Delay})
	defer func() { err = errors.Join(err, conn.Close()) }()
	return agent(ctx, cfg.AgentConfig, conn, version, stdout, stderr)
}
