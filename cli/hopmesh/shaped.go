package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/hopmesh/hopmesh/cli"
	"github.com/hopmesh/hopmesh/node/shape"
)

// shaped is agent over a socket that is as slow as it is told.
func shaped(ctx context.Context, cfg cli.ShapedConfig, version string, stdout, stderr io.Writer) (err error) {
	addr, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return cli.WrongUsage(fmt.Errorf("--listen %s is no address to listen on: %w", cfg.Listen, err))
	}
	socket, err := net.ListenUDP("udp", addr)
	if err != nil {
		return fmt.Errorf("listen on UDP %s: %w", cfg.Listen, err)
	}
	conn := shape.Wrap(socket, shape.Link{Rate: cfg.Rate, Delay: cfg.Delay})
	defer func() { err = errors.Join(err, conn.Close()) }()
	return agent(ctx, cfg.AgentConfig, conn, version, stdout, stderr)
}
