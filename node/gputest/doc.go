// Package gputest holds tests of whole meshes whose nodes compute on GPUs, by build tags
// cuda and emulator, beside the same meshes on processors. It has no code of its own.
package gputest
