// Package cputime reads how much processor time this process has used.
package cputime
