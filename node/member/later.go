//go:build later

package member

func init() { Disk.Max++ }
