#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-mapped.sh BUILD
# flowfd-run --mapped with the module, as root in a virtual machine: which counters are
# mapped, that nothing else changes, and how many system calls go away. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

run=$build/flowfd-run
eventfds=$build/tests/eventfds
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

[ -e /dev/flowfd ] ||
	tap_skip_all "flowfd-run --mapped" "the module is not loaded"

# reports ARGUMENT...: what --verbose says of each eventfd under --mapped
reports() {
	"$run" --mapped --verbose "$@" 2>&1 | sed -n 's/^flowfd-run\[[0-9]*\]: //p'
}

# passes WHAT COMMAND...: a test program succeeds; shows what it measured
passes() {
	what=$1
	shift
	output=$("$@" 2>&1)
	tap_is "$? $(echo "$output" | grep -A 1 '^not ok')" "0 " "$what"
	echo "$output" | sed -n 's/^ok.*SKIP/# skipped:&/p; /^# [0-9]/p'
}

tap_is "$(reports "$eventfds" call semaphore raw library fork call)" \
"eventfd 1 of eventfds: fd 3, mapped counter
eventfd 2 of eventfds: fd 4, counter, not mapped: it is a semaphore
eventfd 3 of eventfds: fd 5, mapped counter
eventfd 4 of libflowfd-test.so: fd 6, mapped counter
eventfd 1 of eventfds: fd 7, mapped counter" "all but semaphores are mapped"
tap_is "$(reports "$eventfds" vfork)" \
"eventfd 1 of eventfds: fd 3, counter, not mapped: the process may share its memory" \
	"nor those of a child of vfork(2)"
tap_is "$(reports --maximum 10 --keep-eventfd 2 "$eventfds" call=20 call)" \
"eventfd 1 of eventfds: fd 3, mapped counter
eventfd 2 of eventfds: fd 4, kept" "with other options"
tap_is "$("$run" --mapped --maximum 10 --rate 1000 --burst 2 "$eventfds" call |
	cut -d ' ' -f 3-)" "a 2/1000" "which the counter has"
# Each takes three pages.
# shellcheck disable=SC2016 # the inner shell expands it
tap_is "$(reports setpriv --reuid 65534 --clear-groups \
	sh -c 'ulimit -l 20; "$1" call call' sh "$eventfds")" \
"eventfd 1 of eventfds: fd 3, mapped counter
eventfd 2 of eventfds: fd 4, counter, not mapped: ENOMEM" "the limit of locked memory"
# A second descriptor is needed for a moment.
# shellcheck disable=SC2016
tap_is "$(reports sh -c 'ulimit -n 5; "$1" call call' sh "$eventfds")" \
"eventfd 1 of eventfds: fd 3, mapped counter
eventfd 2 of eventfds: fd 4, counter, not mapped: EMFILE" "the limit of descriptors"
# shellcheck disable=SC2016
tap_is "$(reports sh -c 'ulimit -v 10000; "$1" call' sh "$eventfds")" \
"eventfd 1 of eventfds: fd 3, counter, not mapped: there is no address space" \
	"the limit of address space"

passes "what it must keep, as the system does it" "$build/tests/in-memory"
passes "in memory" "$run" --mapped "$build/tests/in-memory" mapped
passes "through a bucket" "$run" --mapped --rate 100000 --burst 1000 \
	"$build/tests/in-memory" mapped
passes "without memory for them" setpriv --reuid 65534 --clear-groups \
	sh -c "ulimit -l 0; exec $run --mapped $build/tests/in-memory"
for options in "" --edge-per-take; do
	# shellcheck disable=SC2086 # none, or one
	passes "eventfd(2) $options" "$run" --mapped $options "$build/tests/eventfd"
done
passes "descriptors that run out" "$run" --mapped --maximum 100 "$build/tests/starved"
if [ -x "$build/tests/handover" ]; then
	passes "eventfds for the kernel" "$run" --mapped "$build/tests/handover" refused
	passes "with all settings" "$run" --mapped --maximum 100000 --rate 100000 \
		--burst 100 "$build/tests/handover" refused
else
	tap_skip "eventfds for the kernel" "libaio or liburing is not installed"
fi

# Little room, other C libraries, AddressSanitizer.
tap_is "$(reports --maximum 10 --rate 1000 --burst 2 "$build/tests/corners" stack |
	grep -c "mapped counter")" 2 "4 KB of stack"
"$run" --mapped "$build/tests/corners" thread
tap_is $? 0 "a program that moves its thread pointer"
touch "$here/file"
"$run" --mapped --log "$here/log" "$build/tests/corners" close "$here/file"
tap_is "$?:$(grep -c "mapped counter" "$here/log")" 0:3 \
	"a program that closes all descriptors"
for program in plain-musl plain-asan; do
	if [ ! -e "$build/tests/$program" ]; then
		tap_skip "$program" "there was no compiler for it"
		continue
	fi
	tap_is "$("$run" --mapped --verbose "$build/tests/$program" 2>&1 |
		sed 's/.*]: //')" \
"eventfd 1 of $program: fd 3, mapped counter
eventfd 2 of $program: fd 4, mapped counter
call 5, raw 6, ioctl 1" "$program"
done

if ! command -v python3 >/dev/null; then
	tap_skip_all "programs" "python3 is not installed"
fi

# How many edges there are for two writes, and then for one after a read.
cat >"$here/edges.py" <<'END'
import os, select
fd = os.eventfd(0, os.EFD_NONBLOCK)
poller = select.epoll()
poller.register(fd, select.EPOLLIN | select.EPOLLET)
edges = []
for take in False, False, True:
    if take:
        os.eventfd_read(fd)
    os.eventfd_write(fd, 1)
    edges.append(len(poller.poll(0)))
print(*edges)
END
tap_is "$(python3 "$here/edges.py")" "1 1 1" "edges of an eventfd"
tap_is "$("$run" --mapped python3 "$here/edges.py")" "1 1 1" "and of a mapped counter"
tap_is "$("$run" --mapped --edge-per-take python3 "$here/edges.py")" "1 0 1" \
	"and with --edge-per-take"

# Runs a loop and two threads that send to it. Gives the calls of read and write.
cat >"$here/threads.py" <<'END'
import threading
def calls():
    with open("/proc/self/io") as io:
        return sum(int(line.split()[1]) for line in io if line.startswith("sysc"))
def calls_of(loop, send):
    before = calls()
    threads = [threading.Thread(target=loop)]
    threads += [threading.Thread(target=send, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return calls() - before
END

# Sends callbacks to a main loop of GLib from other threads: each send writes to its
# eventfd. Prints whether all arrived, and how many calls of read and write there were.
cat >"$here/glib.py" <<'END'
import ctypes, threads
glib = ctypes.CDLL("libglib-2.0.so.0")
glib.g_main_context_new.restype = ctypes.c_void_p
glib.g_main_loop_new.restype = ctypes.c_void_p
glib.g_main_loop_new.argtypes = ctypes.c_void_p, ctypes.c_int
glib.g_main_loop_run.argtypes = glib.g_main_loop_quit.argtypes = [ctypes.c_void_p]
Call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
glib.g_main_context_invoke.argtypes = ctypes.c_void_p, Call, ctypes.c_void_p
glib.g_main_context_wakeup.argtypes = [ctypes.c_void_p]
context = glib.g_main_context_new()
loop = glib.g_main_loop_new(context, False)
MANY = 3000
arrived = 0
@Call
def arrive(data):
    global arrived
    arrived += 1
    if arrived == 2 * MANY:
        glib.g_main_loop_quit(loop)
    return 0
def send(number):
    for _ in range(MANY):
        glib.g_main_context_invoke(context, arrive, None)
        glib.g_main_context_wakeup(context)
calls = threads.calls_of(lambda: glib.g_main_loop_run(loop), send)
print(arrived == 2 * MANY, calls)
END

# The same with a loop of libuv, which writes once until it has read. So the threads
# send in turn with the loop. Prints whether all arrived once.
cat >"$here/libuv.py" <<'END'
import collections, ctypes, threading, threads
uv = ctypes.CDLL("libuv.so.1")
uv.uv_loop_size.restype = uv.uv_handle_size.restype = ctypes.c_size_t
ASYNC = 1
Call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
loop = ctypes.create_string_buffer(uv.uv_loop_size())
wake = ctypes.create_string_buffer(uv.uv_handle_size(ASYNC))
MANY = 1000
sent = collections.deque()
turn = threading.Semaphore(1)
arrived = []
@Call
def arrive(handle):
    while sent:
        arrived.append(sent.popleft())
        turn.release()
    if len(arrived) == 2 * MANY:
        uv.uv_close(wake, None)
def send(number):
    for i in range(MANY):
        turn.acquire()
        sent.append(2 * i + number)
        uv.uv_async_send(wake)
errors = [uv.uv_loop_init(loop), uv.uv_async_init(loop, wake, arrive)]
calls = threads.calls_of(lambda: errors.append(uv.uv_run(loop, 0)), send)
errors.append(uv.uv_loop_close(loop))
print(sorted(arrived) == [*range(2 * MANY)] and not any(errors), calls)
END

# loop WHAT SCRIPT LIBRARY: a loop is right, and most reads and writes go away
loop() {
	if ! python3 -c "import ctypes; ctypes.CDLL('$3')" 2>/dev/null; then
		tap_skip "$1" "$3 is not installed"
		return
	fi
	plain=$(python3 "$here/$2")
	mapped=$("$run" --mapped python3 "$here/$2")
	tap_is "${plain% *} ${mapped% *}" "True True" "$1"
	echo "# reads and writes: eventfd ${plain#* }, mapped ${mapped#* }"
	tap_ok "with fewer reads and writes" \
		[ "$((${mapped#* } * 10))" -lt "${plain#* }" ]
}
loop "a main loop of GLib" glib.py libglib-2.0.so.0
loop "a loop of libuv" libuv.py libuv.so.1
if python3 -c 'import test.test_os' 2>/dev/null; then
	passes "Python's tests of eventfd" "$run" --mapped \
		python3 -m test test_os -m EventfdTests
else
	tap_skip "Python's tests" "libpython3-testsuite is not installed"
fi
# Its eventfds are semaphores.
if command -v stress-ng >/dev/null; then
	tap_is "$(cd "$here" && reports stress-ng --eventfd 1 --verify -t 3 |
		sed -n 's/.*, counter, //p' | uniq)" "not mapped: it is a semaphore" \
		"stress-ng"
else
	tap_skip "stress-ng" "stress-ng is not installed"
fi
tap_done
