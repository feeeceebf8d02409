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
		verbose=$(identity 2)
		LD_PRELOAD=$shim FLOWFD_RUN_SETTINGS=$(echo "$settings" |
			sed "s/verbose/verbose=$verbose/") "$@"
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
contract "everything kept" "keep=*"
contract "wrong settings" "maximum=0"
tap_is "$(with verbose "$build/tests/eventfd" |
	sed -n 's/^flowfd-run\[.*, //p' | sort -u | tr '\n' ' ')" \
	"EMFILE ENOENT " \
	"every eventfd passes through the shim"
output=$(LD_PRELOAD=$shim "$build/tests/eventfd")
tap_is "$?" 0 "settings missing"

tap_is "$(with "" "$build/tests/eventfds" dlerror)" "an error" "dlerror(3) is the program's"
tap_is "$(report "" call)" "" "quiet without --verbose"
tap_is "$(report verbose=0 call)" "" "quiet with wrong settings"
tap_is "$(report verbose call semaphore=5 raw)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, ENOENT" "reports each"
tap_is "$(report verbose/keep=1/keep=3-4 call call raw call call)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, kept
eventfd 4 of eventfds: fd 6, kept
eventfd 5 of eventfds: fd 7, ENOENT" "keeps by number"
tap_is "$(report 'verbose/keep=libflowfd-t*' call library raw)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of libflowfd-test.so: fd 4, kept
eventfd 3 of eventfds: fd 5, ENOENT" "keeps by library"
tap_is "$(with verbose/keep=apart "$build/tests/apart" call |
	sed -n 's/^flowfd-run\[[0-9]*\]: //p')" \
	"eventfd 1 of apart: fd 3, kept" "keeps by an executable with gaps"
tap_is "$(report 'verbose/keep=event*' call library raw)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 2 of libflowfd-test.so: fd 4, ENOENT
eventfd 3 of eventfds: fd 5, kept" "keeps by program"
tap_is "$(report 'verbose/keep=1' call fork call call)" \
"eventfd 1 of eventfds: fd 3, kept
eventfd 1 of eventfds: fd 4, kept
eventfd 2 of eventfds: fd 5, ENOENT" "a child counts from 1"
tap_is "$(report verbose call call vfork call)" \
"eventfd 1 of eventfds: fd 3, ENOENT
eventfd 2 of eventfds: fd 4, ENOENT
eventfd 1 of eventfds: fd 5, ENOENT
eventfd 3 of eventfds: fd 5, ENOENT" "so does one of vfork, and its parent goes on"
tap_is "$(report verbose call call vfork-equal call | sed 's/ of.*//' |
	tr '\n' ' ')" "eventfd 1 eventfd 2 eventfd 1 eventfd 3 " \
	"also with process IDs that are equal modulo 1024"
tap_is "$(report 'verbose/keep=sh' call)" \
"eventfd 1 of eventfds: fd 3, ENOENT" "a name that does not match"

if [ -x "$build/tests/handover" ]; then
	output=$(with "" "$build/tests/handover")
	tap_is "$?:$(echo "$output" | grep '^not ok')" 0: \
		"calls that hand eventfds to the kernel"
else
	tap_skip "handing eventfds over" "libaio or liburing is not installed"
fi

# Little room, and other C libraries.
tap_is "$(with "" "$build/tests/corners" thread)$?" 0 \
	"a program that moves its thread pointer"
tap_is "$(LD_PRELOAD=$build/tests/libflowfd-preload-guarded.so \
	FLOWFD_RUN_SETTINGS='' "$build/tests/corners" thread 2>&1)$?" 0 \
	"so with a stack protector in the shim"
output=$(with "verbose" "$build/tests/corners" stack)
tap_is "$?:$(echo "$output" | grep -c ENOENT)" 0:2 "4 KB of stack"
echo "$output" | sed -n 's/.*left$/# &/p'
output=$(with "maximum=10/rate=1000/burst=2/keep=libx*" "$build/tests/corners" stack)
tap_is "$?" 0 "4 KB of stack with all settings"
if [ -x "$build/tests/plain-musl" ]; then
	tap_is "$(with verbose "$build/tests/plain-musl" | sed 's/.*]: //')" \
"eventfd 1 of plain-musl: fd 3, error 2
eventfd 2 of plain-musl: fd 4, error 2
call 5, raw 6, ioctl 1" "a program of another C library"
else
	tap_skip "another C library" "musl-gcc is not installed"
fi
tap_is "$(ASAN_OPTIONS=verify_asan_link_order=0 with verbose "$build/tests/plain-asan" |
	sed 's/.*]: //')" \
"eventfd 1 of plain-asan: fd 3, ENOENT
eventfd 2 of plain-asan: fd 4, ENOENT
call 5, raw 6, ioctl 1" "a program with AddressSanitizer"

# Functions that the program defines itself.
tap_is "$(with "" "$build/tests/namesake")" "ioctl 8" \
	"the program's own ioctl(), made of syscall(2)"

# Libraries that dlopen(3) loads.
called="not called"
[ ! -x "$build/tests/libflowfd-uring.so" ] || called="as by syscall(2)"
for settings in verbose keep=2 'keep=libx*'; do
	tap_is "$(with "$settings" "$build/tests/opener" constructor \
		"$build/tests/libflowfd-constructor.so" | tail -n 1)" \
		"read 7, liburing: $called" \
		"a constructor that waits for a thread's calls: $settings"
done
tap_is "$(with verbose "$build/tests/opener" constructor \
	"$build/tests/libflowfd-constructor.so" | sed -n 's/.*]: //p')" \
	"eventfd 1 of libflowfd-constructor.so: fd 3, ENOENT" "and its report"
for library in foreign foreign-sysv; do
	tap_is "$(with "" "$build/tests/opener" foreign \
		"$build/tests/libflowfd-$library.so")" \
"io_submit 654321, io_uring_register 754321, eventfd 854321, async -22" \
		"functions of lib$library that are named like those of others"
done
if [ -x "$build/tests/libflowfd-uring.so" ]; then
	tap_is "$(with "" "$build/tests/opener" uring \
		"$build/tests/libflowfd-uring.so")" "as by syscall(2)
as by syscall(2) with a number" "a library with its own liburing"
	tap_is "$(with "" "$build/tests/opener" foreign \
		"$build/tests/libflowfd-foreign.so" "$build/tests/libflowfd-uring.so")" \
"io_submit 654321, io_uring_register 754321, eventfd 854321, async -22" \
		"a library's own functions, beside liburing"
	tap_is "$(with "" "$build/tests/opener" forked \
		"$build/tests/libflowfd-uring.so")" "200 children" \
		"children that call libaio, while threads of their parent do"
	tap_is "$(LD_DEBUG=bindings with "" "$build/tests/opener" uring \
		"$build/tests/libflowfd-uring.so" 2>&1 | sed -n \
		's/.*libflowfd-uring.so .* to .*preload.so .*`\(io_[a-z_]*\).*/\1/p' |
		LC_ALL=C sort | tr '\n' ' ')" \
		"io_submit io_uring_register io_uring_register_eventfd\
 io_uring_register_eventfd_async " "it is bound to the shim"
else
	tap_skip "a library with its own liburing" "liburing is not installed"
fi

# The dynamic linker does not preload by path into a program that runs set-user-ID.
linked="a program that runs set-user-ID takes no settings"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	"${CC:-cc}" -D_GNU_SOURCE -o "$here/linked" "${0%/*}/programs/plain.c" \
		-Wl,--no-as-needed "$shim" -Wl,-rpath,"$(realpath "$build")"
	touch "$here/own"
	tap_is "$(FLOWFD_RUN_SETTINGS='' FLOWFD_RUN_LOG=$here/own setpriv --ruid 65534 \
		"$here/linked"):$(cat "$here/own")" "call 5, raw 6, ioctl 1:" "$linked"
	FLOWFD_RUN_SETTINGS='' FLOWFD_RUN_LOG=$here/own "$here/linked" >"$here/output"
	tap_is "$(wc -l <"$here/own")" 2 "another one that is linked with the shim does"
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
touch "$here/log"
export FLOWFD_RUN_LOG="$here/log"
tap_is "$(with "" "$build/tests/eventfds" call | wc -l):$(sed 's/.*]: //' \
	"$here/log")" "1:eventfd 1 of eventfds: fd 3, ENOENT" "reports in a file"
with "verbose" "$build/tests/corners" close "$here/file"
tap_is "$?:$(cat "$here/file"):$(grep -c corners "$here/log")" 0::3 \
	"also of a program that closed all descriptors"
ln -s file "$here/link"
FLOWFD_RUN_LOG=$here/link with "" "$build/tests/eventfds" call >"$here/output"
tap_is "$(wc -l <"$here/output"):$(cat "$here/file")" 1: \
	"no report through a link in the place of the file"
with "" "$build/tests/corners" limit
tap_is "$?" 0 "no signal for a report that is larger than a file may be"
unset FLOWFD_RUN_LOG
with "" "$build/tests/corners" pipe
tap_is "$?" 0 "no signal for a report to a pipe without reader"

# exported SHIM: what it replaces, a line each
exported() {
	nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort
}
names="eventfd
io_submit@LIBAIO_0.1
io_uring_register@LIBURING_2.3
io_uring_register@LIBURING_2.4
io_uring_register_eventfd@LIBURING_2.0
io_uring_register_eventfd@LIBURING_2.4
io_uring_register_eventfd_async@LIBURING_2.0
io_uring_register_eventfd_async@LIBURING_2.4
ioctl
syscall"
tap_is "$(exported "$shim")" "$names" "what the shim replaces"

# With either time_t, for programs with either.
top=$(cd "${0%/*}/.." && pwd)
for bits in 32 64; do
	if ! (echo '#include <stdint.h>
int main(void) { return 0; }' | ${CC:-cc} -m32 -x c -o "$here/32" -) 2>/dev/null; then
		tap_skip "a time_t of $bits bits" "there is no 32-bit compiler"
		continue
	fi
	set -- -m32 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$top" \
		-I"$top/include" -I"$top/../uapi" -D_FILE_OFFSET_BITS=64 \
		-D_TIME_BITS="$bits"
	tap_ok "a shim with a time_t of $bits bits" "${CC:-cc}" "$@" -fPIC \
		-fvisibility=hidden -shared -o "$here/shim.so" "$top"/preload/*.c \
		-Wl,--version-script="$top/preload/versions.map"
	tap_is "$(exported "$here/shim.so")" "__ioctl_time64
$names" "what that replaces"
	for program in 32 64; do
		${CC:-cc} "$@" -U_TIME_BITS -D_TIME_BITS="$program" \
			-o "$here/32" "$top/tests/programs/plain.c"
		tap_is "$(LD_PRELOAD=$here/shim.so FLOWFD_RUN_SETTINGS='' \
			"$here/32" | sed 's/.*]: //')" "call 5, raw 6, ioctl 1" \
			"under it a program with one of $program bits"
	done
done
tap_done
