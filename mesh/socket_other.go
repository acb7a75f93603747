//go:build !linux

package mesh

import "net"

// joining returns the socket unchanged: only Linux joins packets.
func joining(c net.PacketConn) net.PacketConn { return c }
