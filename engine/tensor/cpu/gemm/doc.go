// Package gemm multiplies dense matrices: the product of layers forward, and of
// both their gradients.
//
// Every element of c adds up its products in ascending order, each rounded once,
// starting from what c held or from 0. So neither blocks, chunks nor threads show
// in the bits, and AVX2, AVX-512 and NEON give the same. Only a long reduction (TN)
// is cut into parts that are added up afterwards, and how many follows from the
// shape alone.
//
// The kernels read a where it lies. b is packed into panels as wide as the kernels
// for NN and NT; for TN it is read where it lies, too. engine/tensor/gen writes the
// assembly.
package gemm
