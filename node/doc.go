// Package node builds the parts of a hopmesh node, connects them and runs them
// until its context ends. DESIGN.md says what each part is for.
//
// It offers the parts as the API's backend and as metrics. It holds no protocol, no
// plan logic and no training of its own.
package node
