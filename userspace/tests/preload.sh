#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The shim alone, without the module: programs get real eventfds and see no
# difference.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

shim=$build/libflowfd-preload.so
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

[ ! -e /dev/flowfd ] ||
	tap_skip_all "the shim without the module" "the module is loaded"

# with SETTINGS COMMAND...: "verbose" among them gets the identity of descriptor 2
with() {
	settings=$1
	shift
	{
		LD_PRELOAD=$shim FLOWFD_RUN_SETTINGS=$(echo "$settings" |
			sed "s/verbose/verbose=$(identity 2)/") "$@"
	} 2>&1
}

# identity FD: device and inode, as flowfd-run writes them
identity() {
	stat -L -c %d:%i "/proc/self/fd/$1" <&"$1" | {
		IFS=: read -r device inode
		echo $((device >> 8 & 0xfff)):$((device & 0xff)):"$inode"
	}
}

# contract WHAT SETTINGS: eventfd(2) keeps its contract
contract() {
	output=$(with "$2" "$build/tests/eventfd")
	tap_is "$?:$(echo "$output" | grep '^not ok')" "0:" "$1"
}

# report SETTINGS COMMAND...: the output of --verbose, without process IDs
report() {
	settings=$1
	shift
	with "$settings" "$build/tests/eventfds" "$@" |
		sed -n 's/^flowfd-run\[[0-9]*\]: //p'
}

contract "no settings" ""
contract "all settings" "maximum=10/rate=1000/burst=2"
contract "everything kept" "keep-eventfd=*"
contract "wrong settings" "maximum=0"
tap_is "$(with verbose "$build/tests/eventfd" |
	sed -n 's/^flowfd-run\[.*, //p' | sort -u | tr '\n' ' ')" \
	"EMFILE ENOENT " \
	"every eventfd passes through the shim"
output=$(LD_PRELOAD=$shim "$build/tests/eventfd")
tap_is "$?" 0 "settings missing"

tap_is "$(report "" call)" "" "quiet without --verbose"
tap_is "$(report verbose/maximum=0 call)" "" "quiet with wrong settings"
tap_is "$(report verbose call semaphore=5)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, ENOENT" "reports each"
tap_is "$(report verbose/keep-eventfd=1/keep-eventfd=3-4 call call call call call)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, kept
eventfd 4 of eventfds: fd 6, kept
eventfd 5 of eventfds: fd 7, ENOENT" "keeps by number"
tap_is "$(report 'verbose/keep-eventfd=libflowfd-t*' call library)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of libflowfd-test.so: fd 4, kept" "keeps by library"
tap_is "$(with verbose/keep-eventfd=apart "$build/tests/apart" call |
	sed -n 's/^flowfd-run\[[0-9]*\]: //p')" \
	"eventfd 1 of apart: fd 3, kept" "keeps by an executable with gaps"
tap_is "$(report 'verbose/keep-eventfd=event*' call library)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of libflowfd-test.so: fd 4, ENOENT" "keeps by program"
tap_is "$(report 'verbose/keep-eventfd=2' call fork call call)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, kept
eventfd 3 of eventfds: fd 5, ENOENT" "a child goes on from its parent's number"
tap_is "$(report verbose call clearenv call)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, ENOENT" "a program without its environment"
tap_is "$(report 'verbose/keep-eventfd=sh' call)" \
"eventfd 1 of eventfds: fd 3, ENOENT" "a name that does not match"

# Little room, and other C libraries.
output=$(with "maximum=10/rate=1000/burst=2/keep-eventfd=libx*" "$build/tests/corners" stack)
tap_is "$?" 0 "4 KB of stack"
echo "$output" | sed 's/^/# /'
if [ -x "$build/tests/plain-musl" ]; then
	tap_is "$(with verbose "$build/tests/plain-musl" | sed 's/.*]: //')" \
"eventfd 1 of plain-musl: fd 3, error 2
read 5" "a program of another C library"
else
	tap_skip "another C library" "musl-gcc is not installed"
fi
tap_is "$(ASAN_OPTIONS=verify_asan_link_order=0 with verbose "$build/tests/plain-asan" |
	sed 's/.*]: //')" \
"eventfd 1 of plain-asan: fd 3, ENOENT
read 5" "a program with AddressSanitizer"

# A library that dlopen(3) loads.
for settings in verbose 'keep-eventfd=libx*'; do
	tap_is "$(with "$settings" "$build/tests/opener" \
		"$build/tests/libflowfd-constructor.so" | tail -n 1)" "read 7" \
		"a constructor that waits for a thread's call: $settings"
done
tap_is "$(with verbose "$build/tests/opener" "$build/tests/libflowfd-constructor.so" |
	sed -n 's/.*]: //p')" \
	"eventfd 1 of libflowfd-constructor.so: fd 3, ENOENT" "and its report"

# The dynamic linker does not preload by path into a program that runs set-user-ID.
linked="a program that runs set-user-ID takes no settings"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	"${CC:-cc}" -D_GNU_SOURCE -o "$here/linked" "${0%/*}/programs/plain.c" \
		-Wl,--no-as-needed "$shim" -Wl,-rpath,"$(realpath "$build")"
	tap_is "$(with verbose setpriv --ruid 65534 "$here/linked")" "read 5" "$linked"
	tap_is "$(with verbose "$here/linked" | wc -l)" 2 \
		"another one that is linked with the shim does"
else
	tap_skip "$linked" "not root, or no setpriv"
fi

# Where reports go, and where not.
touch "$here/file"
with "verbose" "$build/tests/corners" close "$here/file"
tap_is "$?:$(cat "$here/file")" 0: "no report in a file of the program's"
tap_is "$(with "verbose" sh -c '"$1" call 2>"$2"' sh "$build/tests/eventfds" \
	"$here/file" | wc -l):$(cat "$here/file")" 1: \
	"no report in a child's stderr that is another file"
tap_is "$(nm -D --defined-only "$shim" | awk '$2 != "A" { print $3 }')" eventfd \
	"what the shim replaces"
tap_done
