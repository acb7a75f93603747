// Command facts holds the facts about the CUDA driver's interface that this program
// needs, at the level of CUDA 12, as tables of names, types and numbers. It contains no
// line of NVIDIA's header. From the tables it generates part of cuda.h and the function
// definitions of the shim, which are checked in. The behaviour of the functions is not
// described here.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// files returns the generated files, by their path below cuda/driver.
func files() map[string]string {
	return map[string]string{"include/cuda.h": header(), "stubs.c": stubs()}
}

func main() {
	check := flag.Bool("check", false, "write nothing; fail where what is checked in is not what would be written")
	agree := flag.Bool("agree", false, "print the program that compares headers, and nothing else")
	dir := flag.String("dir", "cuda/driver", "`folder` of the driver's package")
	flag.Parse()
	if *agree {
		fmt.Print(agreement())
		return
	}
	if err := write(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "facts:", err)
		os.Exit(1)
	}
}

func write(dir string, check bool) error {
	for name, text := range files() {
		path := filepath.Join(dir, name)
		if !check {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
			continue
		}
		is, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(is, []byte(text)) {
			return fmt.Errorf("%s is not what the tables make; run go run ./cuda/driver/facts", path)
		}
	}
	return nil
}
