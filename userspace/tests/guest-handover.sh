#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-handover.sh BUILD
# Programs under flowfd-run that hand eventfds to the kernel, with the module, as
# root in a machine that may be broken. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

run=$build/flowfd-run
handover=$build/tests/handover
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

if [ ! -e /dev/flowfd ]; then
	tap_skip "eventfds for the kernel" "the module is not loaded"
	tap_done
fi
modprobe -aq kvm_amd kvm_intel vhost_vsock

# passes WHAT COMMAND...: all that it tests
passes() {
	what=$1
	shift
	output=$("$@" 2>&1)
	tap_is "$? $(echo "$output" | grep -A 1 '^not ok')" "0 " "$what"
	echo "$output" | sed -n 's/^ok.*SKIP/# skipped:&/p; /^# [0-9]/p'
}

passes "descriptors that run out" "$run" --maximum 100 "$build/tests/starved"

if [ ! -x "$handover" ]; then
	tap_skip "eventfds for the kernel" "libaio or liburing is not installed"
	tap_done
fi

passes "kept eventfds" "$run" --keep-eventfd '*' "$handover"
passes "counters" "$run" --log "$here/log" "$handover" refused
passes "counters with all settings" \
	"$run" --maximum 100000 --rate 100000 --burst 100 "$handover" refused

# told TEXT WHAT: the log has a line with it
told() {
	tap_is "$(grep -c "$1" "$here/log" | sed 's/^[1-9].*/some/')" some "$2"
}
told "for io_submit: now a real eventfd" "--log names AIO"
told "for io_uring_register: now a real eventfd" "and io_uring"
told "for io_submit: stays a counter, it is in use elsewhere; see --keep-ev" \
	"and says why a counter stays"

# Without /proc nothing is known of other users.
blind="mount -t tmpfs none /proc && $handover one"
output=$("$run" --verbose unshare -m sh -c "$blind" 2>&1)
tap_is "$(echo "$output" | tail -n 1)" -22 "nothing is replaced without /proc"
tap_ok "which is said" \
	expr "$output" : ".*for io_submit: unknown, /proc is missing"
tap_is "$("$run" --verbose "$handover" one 2>&1 | tail -n 1)" 1 "but with it"
tap_done
