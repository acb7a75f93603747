//go:build later

package identity

func init() { Wire.Max++ }
