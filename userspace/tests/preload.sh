#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The shim by itself where there is no module: programs get real eventfds and
# notice nothing.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tap.sh"

shim=$build/libflowfd-preload.so

if [ -e /dev/flowfd ]; then
	tap_skip "the shim without the module" "the module is loaded"
	tap_done
fi

# with SETTINGS COMMAND...
with() {
	settings=$1
	shift
	LD_PRELOAD=$shim FLOWFD_RUN_SETTINGS=$settings "$@" 2>&1
}

# contract WHAT SETTINGS: eventfd(2) is as ever
contract() {
	output=$(with "$2" "$build/tests/eventfd")
	tap_is "$?:$(echo "$output" | grep '^not ok')" "0:" "$1"
}

# report SETTINGS COMMAND...: what --verbose prints, without process numbers
report() {
	settings=$1
	shift
	with "$settings" "$build/tests/eventfds" "$@" |
		sed -n 's/^flowfd-run\[[0-9]*\]: //p'
}

contract "no settings" ""
contract "all settings" "maximum=10/rate=1000/burst=2"
contract "everything kept" "keep=*"
contract "wrong settings" "maximum=0"
tap_is "$(with verbose=1 "$build/tests/eventfd" |
	sed -n 's/^flowfd-run\[.*, //p' | sort -u | tr '\n' ' ')" \
	"EMFILE ENOENT " \
	"every eventfd passes through the shim"
output=$(LD_PRELOAD=$shim "$build/tests/eventfd")
tap_is "$?" 0 "settings missing"

tap_is "$(with "" "$build/tests/eventfds" dlerror)" "an error" "dlerror(3) is the program's"
tap_is "$(report "" call)" "" "quiet without --verbose"
tap_is "$(report verbose=0 call)" "" "quiet with wrong settings"
tap_is "$(report verbose=1 call semaphore=5 raw)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, ENOENT" "reports each"
tap_is "$(report verbose=1/keep=1/keep=3-4 call call raw call call)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, kept
eventfd 4 of eventfds: fd 6, kept
eventfd 5 of eventfds: fd 7, ENOENT" "keeps by number"
tap_is "$(report 'verbose=1/keep=libflowfd-t*' call library raw)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of libflowfd-test.so: fd 4, kept
eventfd 3 of eventfds: fd 5, ENOENT" "keeps by library"
tap_is "$(report 'verbose=1/keep=event*' call library raw)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of libflowfd-test.so: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, kept" "keeps by program"
tap_is "$(report 'verbose=1/keep=1' call fork call call)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 1 of eventfds: fd 4, kept
eventfd 2 of eventfds: fd 5, ENOENT" "a child counts from 1"
tap_is "$(report 'verbose=1/keep=sh' call)" \
"eventfd 1 of eventfds: fd 3, ENOENT" "a name that does not match"

tap_is "$(nm -D --defined-only "$shim" | awk '{ print $3 }' | tr '\n' ' ')" \
	"eventfd syscall " "the shim replaces two functions"
tap_done
