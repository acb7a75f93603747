// Package tensor says what a matrix is and what a device can do with it: the
// operations that layers are written in, once for every device. It computes
// nothing itself.
//
// engine/tensor/cpu does it with this machine's cores, engine/tensor/reference
// slowly and in float64, which is what the others are judged by; the suite in
// engine/tensor/contract is what any device must pass.
package tensor
