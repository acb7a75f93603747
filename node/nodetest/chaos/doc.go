// Package chaos draws histories of faults from seeds, lets them happen to whole meshes
// that train, import and admit nodes meanwhile, and checks what must hold afterwards. A
// seed repeats its history, not the order in which goroutines run. Only tests import it.
package chaos
