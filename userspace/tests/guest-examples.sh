#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-examples.sh BUILD
# The programs in examples/ with the module; those that need none also without it, on the
# host as well. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

backends=fallback
[ ! -e /dev/flowfd ] || backends="fallback module"
for backend in $backends; do
	export FLOWFD_BACKEND="$backend"
	output=$("$build/examples/ring" 2>&1)
	tap_is "$? $output" "0 3000 events of 3 counters" "ring, $backend"
	output=$("$build/examples/ring-threads" 2>&1)
	tap_is "$? $output" "0 3000 events by 3 threads" "ring-threads, $backend"
	output=$("$build/examples/peer" 2>&1)
	tap_is "$? $output" "0 1000 items, then the producer was gone" "peer, $backend"
	# Nothing is lost, and the maximum bounds how many items wait.
	output=$("$build/examples/bounded-queue" 2>&1)
	tap_is "$? $(echo "$output" | sed -E \
		's/at most ([1-9]|[1-5][0-9]|6[0-4]) at once/at most 64 at once/')" \
		"0 20000 items, at most 64 at once, none lost" \
		"bounded-queue, $backend: $output"
	tap_is "$("$build/examples/first" 2>&1)" \
"add: Success
add: Success
add: Success
add: Resource temporarily unavailable
take: 3" "first, $backend"
done
unset FLOWFD_BACKEND

[ -e /dev/flowfd ] ||
	tap_skip_all "examples with the module" "the module is not loaded"

# Two processes that have a file with a key.
key=$(mktemp -u)
"$build/examples/shared" "$key" >"$key.out" 2>&1 &
for _ in $(seq 100); do
	[ ! -s "$key" ] || break
	sleep 0.1
done
tap_ok "shared: opens by the key" "$build/examples/shared" "$key"
wait $!
tap_is "$? $(cat "$key.out")" "0 3" "shared: is woken"
tap_ok "shared: nothing is left" test ! -e "$key"
# A file that cannot be opened is not one that is not there yet.
mkdir "$key.d"
ln -s loop "$key.d/loop"
tap_is "$(timeout 10 "$build/examples/shared" "$key.d/loop" 2>&1)" \
	"shared: $key.d/loop: Too many levels of symbolic links" "shared: says why"
tap_is "$(ulimit -f 0; trap '' XFSZ; timeout 10 "$build/examples/shared" "$key.d/key" 2>&1)" \
	"shared: $key.d/key: the key was not written: File too large" "shared: no room for the key"
tap_ok "shared: then there is no file" test ! -e "$key.d/key"
rm -rf "$key.out" "$key.d"

# 2,000 events, each half a millisecond or more; 100 wakeups a second. The time has both
# parts of the program, so this allows more takes than necessary.
start=$(date +%s%N)
output=$("$build/examples/rate-limited" 2>&1)
status=$?
spent=$((($(date +%s%N) - start) / 1000000))
takes=$(echo "$output" | sed -n 's/.*: 2000 events in \([0-9]*\) takes$/\1/p')
# shellcheck disable=SC2086 # a number of each part
set -- $takes
tap_is "$status $# $((${2:-999999} <= spent / 10 + 3 && ${1:-0} > 3 * ${2:-999999}))" \
	"0 2 1" "rate-limited, in $spent ms: $takes"

# Each line is written or counted as dropped, and the disk is too slow for all.
output=$("$build/examples/logger" 2>&1)
tap_is "$? $(echo "$output" | sed 's/[1-9][0-9]* written, [1-9][0-9]* dropped/N, N/')" \
	"0 20000 lines: N, N" "logger: $output"

# 20,000 frames, a thousand interrupts a second and those of the link.
output=$("$build/examples/moderation" 2>&1)
status=$?
tap_is "$status $(echo "$output" | sed 's/ in .*//')" \
	"0 20000 frames and 5 link changes" "moderation: $output"
tap_is "$(($(echo "$output" | sed 's/.*interrupts, \([0-9]*\) a second/\1/') <= 1020))" 1 \
	"it interrupts a thousand times a second"
tap_done
