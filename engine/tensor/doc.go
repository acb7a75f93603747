// Package tensor defines matrices and the operations of a device: layers are written in
// terms of them, once for every device. It computes nothing itself.
//
// engine/tensor/cpu implements it on this machine's cores; engine/tensor/reference,
// slowly and in float64, is the reference for the others; and the suite in
// engine/tensor/contract must pass on every device.
package tensor
