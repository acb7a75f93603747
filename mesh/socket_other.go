//go:build !linux

package mesh

import "net"

// joining is the socket as it is: only Linux joins packets.
func joining(c net.PacketConn) net.PacketConn { return c }
