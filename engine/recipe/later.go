//go:build later

package recipe

func init() { Computing++ }
