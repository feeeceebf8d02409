#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-run.sh BUILD
# flowfd-run with the module, as root in a virtual machine: which eventfds become
# counters, with which settings, and that programs work unchanged. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

run=$build/flowfd-run
eventfds=$build/tests/eventfds
none=ffffffffffffffff
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

[ -e /dev/flowfd ] ||
	tap_skip_all "flowfd-run with the module" "the module is not loaded"

# made ARGUMENT...: runs a program under flowfd-run, with stderr, in normalized form
made() {
	"$run" "$@" 2>&1 | sed -e 's|^\([0-9]* \)/dev/flowfd |\1flowfd |' \
		-e 's/anon_inode:\[\(.*\)\]/\1/' \
		-e 's/^flowfd-run\[[0-9]*\]/flowfd-run/'
}

# contract WHAT OPTION...: eventfd(2) keeps its contract and makes counters; the last
# free descriptor becomes a real eventfd
contract() {
	what=$1
	shift
	output=$("$run" --verbose "$@" "$build/tests/eventfd" 2>&1)
	tap_is "$? $(echo "$output" | grep '^not ok')" "0 " "$what"
	tap_is "$(echo "$output" | sed -n 's/^flowfd-run\[.*, //p' |
		sort -u | tr '\n' ' ')" "EMFILE counter " "and makes counters"
}

contract "counters keep eventfd's contract"
contract "so they do with a maximum" --maximum 10
contract "so they do with all settings" --maximum 10 --rate 1000 --burst 2

tap_is "$(made "$eventfds" call semaphore library fork call)" \
"3 flowfd $none -
4 flowfd $none -
5 flowfd $none -
6 flowfd $none -" "every way to make one, in children too"
tap_is "$(made --maximum 10 --rate 1000 --burst 2 "$eventfds" \
	call semaphore)" \
"3 flowfd a 2/1000
4 flowfd a -" "settings; a semaphore has no bucket"
tap_is "$(made --maximum 10 "$eventfds" \
	call=9 call=10 semaphore=42 call=4294967295)" \
"3 flowfd a -
4 flowfd b -
5 flowfd 2b -
6 flowfd 100000000 -" "the maximum rises above the initial count"

tap_is "$(made --keep-eventfd 2 --keep-eventfd 4-5 "$eventfds" \
	call call call call call call | cut -d ' ' -f 1,2)" \
"3 flowfd
4 eventfd
5 flowfd
6 eventfd
7 eventfd
8 flowfd" "keeps by number"
tap_is "$(made --keep-eventfd 'libflowfd-t*' "$eventfds" \
	call library | cut -d ' ' -f 1,2)" \
"3 flowfd
4 eventfd" "keeps by library"
tap_is "$(made --keep-eventfd eventfds "$eventfds" \
	call library | cut -d ' ' -f 1,2)" \
"3 eventfd
4 flowfd" "keeps by program"
tap_is "$(made --verbose --keep-eventfd 2 "$eventfds" call library \
	2>&1 | grep ^flowfd-run)" \
"flowfd-run: eventfd 1 of eventfds: fd 3, counter
flowfd-run: eventfd 2 of libflowfd-test.so: fd 4, kept" "reports each"

# The kernel signals its own eventfds alone.
modprobe -aq kvm_amd kvm_intel vhost_vsock
# given OPTION...: what each interface of the kernel says of an eventfd
given() {
	"$run" "$@" "$build/tests/signalled" >"$here/given" 2>&1
	sed 's/.*: //' "$here/given" | sort -u
}
tap_is "$(given)" EINVAL "the kernel refuses counters"
sed 's/^/# /' "$here/given"
tap_is "$(given --keep-eventfd '*')" taken "and takes eventfds that are kept"
tap_is "$(head -n 2 "$here/given")" "AIO: taken
io_uring: taken" "of AIO and io_uring at least"

# Where reports go, and where not.
touch "$here/file"
"$run" --verbose "$build/tests/corners" close "$here/file"
tap_is "$?:$(cat "$here/file")" 0: "no report in a file of the program's"
tap_is "$(made --verbose sh -c "$eventfds call 2>$here/file" |
	wc -l):$(cat "$here/file")" 1: "nor in a file that is a child's stderr"

# Little room, other C libraries, AddressSanitizer.
tap_ok "4 KB of stack" "$run" --maximum 10 --rate 1000 --burst 2 \
	--read-mark 2 --max-delay 1ms "$build/tests/corners" stack
for program in plain-musl plain-asan; do
	if [ ! -e "$build/tests/$program" ]; then
		tap_skip "$program" "there was no compiler for it"
		continue
	fi
	tap_is "$(made --verbose "$build/tests/$program")" \
"flowfd-run: eventfd 1 of $program: fd 3, counter
read 5" "$program"
done
tap_is "$(ASAN_OPTIONS=verify_asan_link_order=1 "$run" \
	"$build/tests/plain-asan" 2>&1 | grep -c "does not come first")" 1 \
	"the user's ASAN_OPTIONS are stronger"
# shellcheck disable=SC2016 # the inner shell expands it
tap_is "$(LD_PRELOAD="libdl.so.2 libm.so.6" "$run" sh -c 'echo "$LD_PRELOAD"')" \
	"$build/libflowfd-preload.so:libdl.so.2 libm.so.6" "the shim comes first"
tap_is "$(made --maximum 10 "$run" --verbose --keep-eventfd 1 "$eventfds" call call)" \
"flowfd-run: eventfd 1 of eventfds: fd 3, kept
3 eventfd - -
flowfd-run: eventfd 2 of eventfds: fd 4, counter
4 flowfd $none -" "flowfd-run under flowfd-run: the inner one decides"
"$run" --maximum 10 sh -c 'exit 42'
tap_is $? 42 "the program's exit status"
cp "$run" "$here"
if output=$("$here/flowfd-run" true 2>&1); then
	tap_skip "the shim is missing" "it is installed"
else
	tap_is "$?: ${output##*/}" \
		"125: libflowfd-preload.so: No such file or directory" \
		"the shim is missing"
fi
mkdir "$here/a b"
cp "$run" "$build/libflowfd-preload.so" "$here/a b"
output=$("$here/a b/flowfd-run" true 2>&1)
tap_is $? 125 "the shim cannot be preloaded"

# With another device in its place the module seems too old, and the shim falls back.
replaced="mount --bind /dev/null /dev/flowfd"
tap_is "$(unshare -m sh -c "$replaced && $run $eventfds call" 2>/dev/null)" \
	"3 anon_inode:[eventfd] - -" "runs without a module that fits"
tap_is "$(unshare -m sh -c "$replaced && $run true" 2>&1 |
	grep -c "^flowfd-run: true runs without.*module is too old")" 1 \
	"and says so in one line"
tap_is "$(made unshare -m sh -c "$replaced && $eventfds call")" \
	"3 eventfd - -" "falls back in silence"
# A module without policies.
older()
{
	LD_PRELOAD=$build/tests/libflowfd-older.so "$run" "$@" 2>&1
}
tap_is "$(older --maximum 10 --read-mark 5 --max-delay 1ms --overflow drop \
	"$eventfds" call | sed 's|/dev/||')" \
"flowfd-run: $eventfds runs without flow control: the module is too old for --read-mark, \
--write-mark and --overflow
3 anon_inode:[eventfd] - -" "a module that has no policies"
tap_is "$(older --maximum 10 --overflow wait "$eventfds" call | sed 's|/dev/||')" \
	"3 flowfd a -" "the policy of an eventfd needs none"
# A user who may not open the device.
mode=$(stat -c %a /dev/flowfd)
chmod 600 /dev/flowfd
tap_is "$(made setpriv --reuid 65534 --clear-groups "$eventfds" call)" \
	"3 eventfd - -" "falls back without permission"
tap_is "$(setpriv --reuid 65534 --clear-groups "$run" true 2>&1 |
	grep -c "^flowfd-run: true runs without.*/dev/flowfd")" 1 \
	"and flowfd-run says so"
chmod "$mode" /dev/flowfd

# A non-blocking writer: 9 of 20 fit below a maximum of 10.
if command -v python3 >/dev/null; then
	cat >"$here/fill.py" <<'END'
import os
fd = os.eventfd(0, os.EFD_NONBLOCK)
written = 0
try:
    for _ in range(20):
        os.eventfd_write(fd, 1)
        written += 1
except BlockingIOError:
    pass
print(written, os.eventfd_read(fd))
END
	tap_is "$("$run" --maximum 10 python3 "$here/fill.py" 2>&1)" "9 9" \
		"backpressure in an unchanged program"
	# Policies: of blocking eventfds, of which the first writes are below the mark.
	cat >"$here/policies.py" <<'END'
import os, select, sys, time
semaphore = "semaphore" in sys.argv
fd = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK if semaphore else 0)
lines = [line.split() for line in open(f"/proc/self/fdinfo/{fd}")]
print(*[f"{key[7:]}{value}" for key, value in lines if key in (
    "flowfd-read-mark:", "flowfd-write-mark:", "flowfd-max-delay:", "flowfd-overflow:")])
poll = select.poll()
poll.register(fd, select.POLLIN | select.POLLOUT)
written = 0
try:
    for _ in range(20):
        start = time.monotonic()    # the delay begins in the write
        os.eventfd_write(fd, 3)
        written += 1
        if written == 1:
            at_once = poll.poll(0)[0][1]
            late = poll.poll() if at_once & select.POLLIN else None
            while not poll.poll(0)[0][1] & select.POLLIN:
                time.sleep(0.001)
            waited = time.monotonic() - start
            print("at once" if late else "after the delay" if waited >= 0.02 else waited)
except BlockingIOError:
    pass
print(written, "writable" if poll.poll(0)[0][1] & select.POLLOUT else "full",
      os.eventfd_read(fd))
END
	tap_is "$("$run" --maximum 10 --overflow fail \
		python3 "$here/policies.py" 2>&1)" \
"read-mark:1 write-mark:1 max-delay:0 overflow:fail
at once
3 full 9" "a policy that fails"
	tap_is "$("$run" --maximum 12 --overflow drop --write-mark 3 \
		python3 "$here/policies.py" 2>&1)" \
"read-mark:1 write-mark:3 max-delay:0 overflow:drop
at once
20 full 9" "a policy that drops, and a mark of writers"
	tap_is "$("$run" --maximum 12 --overflow saturate \
		--read-mark 5 --max-delay 20ms \
		python3 "$here/policies.py" 2>&1)" \
"read-mark:5 write-mark:1 max-delay:20000000 overflow:saturate
after the delay
20 full 11" "a policy that saturates, and a mark of readers"
	tap_is "$("$run" --maximum 12 --overflow saturate \
		--read-mark 5 --max-delay 20ms --rate 1000 --burst 2 \
		python3 "$here/policies.py" semaphore 2>&1)" \
"read-mark:1 write-mark:1 max-delay:0 overflow:wait
at once
3 writable 1" "a semaphore has no mark of readers, and loses nothing"
else
	tap_skip "backpressure" "python3 is not installed"
fi
# A counter without the module needs an eventfd that takes all values, and loses none.
for policy in wait fail saturate drop; do
	output=$(FLOWFD_BACKEND=fallback "$run" --maximum 10 --overflow "$policy" \
		"$build/examples/first" 2>&1)
	tap_is "$? $(echo "$output" | grep -c '^first: .*modprobe flowfd')" "1 1" \
		"no doorbell that cannot be filled, $policy"
done
# strangers STATUS OUTPUT WHAT: a program succeeded, and all its eventfds were counters
strangers() {
	results=$(echo "$2" | sed -n 's/^flowfd-run\[.*, //p' | sort -u)
	tap_is "$1 $results" "0 counter" "$3"
}

# Without a maximum, as these tests fill an eventfd to its own limit.
if python3 -c 'import test.test_os' 2>/dev/null; then
	output=$("$run" --verbose --rate 1000 --burst 2 \
		python3 -m test test_os -m EventfdTests 2>&1)
	strangers $? "$output" "Python's tests of eventfd"
else
	tap_skip "Python's tests" "libpython3-testsuite is not installed"
fi
if command -v stress-ng >/dev/null; then
	output=$(cd "$here" && "$run" --verbose --maximum 10 \
		stress-ng --eventfd 2 --verify -t 10 2>&1)
	strangers $? "$output" "stress-ng"
else
	tap_skip "stress-ng" "stress-ng is not installed"
fi
tap_done
