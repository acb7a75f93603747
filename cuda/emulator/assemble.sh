#!/bin/sh
# Puts PTX through ptxas for each GPU family it may meet. Errors and spills are
# failures; what a kernel takes is printed with V=1.
set -eu
ptxas=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for arch in sm_80 sm_90; do
	for file; do
		"$ptxas" -v -arch=$arch "$file" -o /dev/null >"$log" 2>&1 || { cat "$log"; exit 1; }
		[ -z "${V:-}" ] || cat "$log"
		if grep -qi warning "$log"; then
			cat "$log"
			exit 1
		fi
		if grep -E 'spill' "$log" | grep -qv ' 0 bytes spill stores, 0 bytes spill loads'; then
			echo "$file for $arch spills:"
			grep -E 'Compiling|spill' "$log"
			exit 1
		fi
	done
	echo "$arch: $# files, no errors, no spills"
done
