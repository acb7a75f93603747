// Package gemm multiplies dense matrices: the products of layers forward and of both
// their gradients.
//
// Every element of c adds up its products in ascending order, each rounded once, starting
// from the value of c or from 0. So results do not depend on blocks, chunks or threads,
// and AVX2, AVX-512 and NEON give the same bits. Only a long reduction (TN) is divided
// into parts that are added up afterwards; their number follows from the shape alone.
//
// The kernels read a in place. b is packed into panels as wide as the kernels for NN and
// NT; for TN it is read in place, too. engine/tensor/gen generates the assembly.
package gemm
