// Command facts writes what is checked in of the CUDA driver's interface: cuda.h
// and the definitions of its functions, from the tables in this folder. They are
// names, types and numbers, and nothing else of NVIDIA's: no line of its header
// is here. Its order of calls, what they mean and what they return is NVIDIA's
// documentation's; only what this program compiles against is in the tables.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// files are what is made, by their place below cuda/driver.
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
