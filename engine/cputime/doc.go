// Package cputime reads how much processor time this process has used, and may use.
package cputime
