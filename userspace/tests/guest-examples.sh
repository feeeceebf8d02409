#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-examples.sh BUILD
# The programs in examples/ with the module, and that the ring of flowfd.py loses
# nothing; those that need no module also without it, on the host as well. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

examples=$(cd "${0%/*}/../examples" && pwd)
backends=fallback
[ ! -e /dev/flowfd ] || backends="fallback module"
for backend in $backends; do
	export FLOWFD_BACKEND="$backend"
	for i in 1 2 3 4 5; do
		output=$("$build/examples/ring" 2>&1)
		tap_is "$? $output" "0 3000 events of 3 counters" "ring, $backend, $i"
		output=$("$build/examples/ring-threads" 2>&1)
		tap_is "$? $output" "0 3000 events by 3 threads" \
			"ring-threads, $backend, $i"
	done
	for i in 1 2 3; do
		output=$("$build/examples/mapped" 2>&1)
		tap_is "$? $output" "0 1000000 items" "mapped, $backend, $i"
	done
	for i in 1 2 3; do
		output=$("$build/examples/peer" 2>&1)
		tap_is "$? $output" "0 1000 items, then the producer was gone" \
			"peer, $backend, $i"
	done
	output=$(LD_LIBRARY_PATH="$build" python3 "$examples/mapped.py" 2>&1)
	tap_is "$? $output" "0 40000 adds, fewer wakeups" "mapped.py, $backend"
	# Nothing is lost, and the maximum bounds how many items wait.
	for i in 1 2 3; do
		output=$("$build/examples/bounded-queue" 2>&1)
		tap_is "$? $(echo "$output" | sed -E \
			's/at most ([1-9]|[1-5][0-9]|6[0-4]) at once/at most 64 at once/')" \
			"0 20000 items, at most 64 at once, none lost" \
			"bounded-queue, $backend, $i: $output"
	done
	tap_is "$("$build/examples/first" 2>&1)" \
"add: Success
add: Success
add: Success
add: Resource temporarily unavailable
take: 3" "first, $backend"
done
unset FLOWFD_BACKEND

# A read goes on after the first signal; the handler of the second one ends it.
tap_is "$(PYTHONPATH=$examples python3 -B - 2>&1 <<'END'
import os, signal
import flowfd

counter = flowfd.Counter.__new__(flowfd.Counter)
signals = 0

def handle(*_):
    global signals
    signals += 1
    if signals == 2:
        counter.write(7)

signal.signal(signal.SIGALRM, handle)
counter.fd = os.eventfd(0)
counter.write(2**64 - 2)
first = counter.read()
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
print(first == 2**64 - 2, counter.read(), signals)
signal.setitimer(signal.ITIMER_REAL, 0)
try:
    counter.write(2**64)
except OverflowError:
    print("too much")
END
)" "True 7 2
too much" "flowfd.py: signals while it waits"

[ -e /dev/flowfd ] ||
	tap_skip_all "examples with the module" "the module is not loaded"

# Two processes that have a file with a key.
key=$(mktemp -u)
"$build/examples/shared" "$key" >"$key.out" 2>&1 &
for i in $(seq 100); do
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

# 2,000 events, each half a millisecond or more; 100 wakeups a second.
start=$(date +%s%N)
output=$("$build/examples/rate-limited" 2>&1)
status=$?
spent=$((($(date +%s%N) - start) / 1000000))
reads=$(echo "$output" | sed -n 's/^100 a second, burst 2: 2000 events in \([0-9]*\) takes$/\1/p')
free=$(echo "$output" | sed -n 's/^no limit: 2000 events in \([0-9]*\) takes$/\1/p')
tap_is "$status" 0 "rate-limited, in $spent ms"
# $spent has both parts of the program, so this allows more takes than necessary.
tap_is "$((${reads:-999999} <= spent / 10 + 3))" 1 "limits takes: $reads"
tap_is "$((${free:-0} > 3 * ${reads:-999999}))" 1 "which are $free otherwise"

# Each line is written or counted as dropped, and the disk is too slow for all.
output=$("$build/examples/logger" 2>&1)
tap_is "$? $(echo "$output" | sed 's/[1-9][0-9]* written, [1-9][0-9]* dropped/N, N/')" \
	"0 20000 lines: N, N" "logger: $output"

# A read for each item but those that came at once, and one for each 64 if the machine is
# fast: a slow one reads for the delay as well, and finds several without a mark.
output=$("$build/examples/batcher" 2>&1)
status=$?
free=$(echo "$output" | sed -n 's/^no mark: 6410 items in \([0-9]*\) takes$/\1/p')
marked=$(echo "$output" | sed -n 's/^mark 64, 2 ms: 6410 items in \([0-9]*\) takes$/\1/p')
tap_is "$status $((${free:-0} > 2 * ${marked:-999999}))" "0 1" \
	"batcher: ${free:-none} takes, and ${marked:-none} with a mark"

# 20,000 frames, a thousand interrupts a second and those of the link.
output=$("$build/examples/moderation" 2>&1)
status=$?
tap_is "$status $(echo "$output" | sed 's/ in .*//')" \
	"0 20000 frames and 5 link changes" "moderation: $output"
tap_is "$(($(echo "$output" | sed 's/.*interrupts, \([0-9]*\) a second/\1/') <= 1020))" 1 \
	"it interrupts a thousand times a second"

in_order()
{
	PYTHONPATH=$examples python3 -Bc 'import flowfd; exit(not flowfd.STORES_IN_ORDER)'
}

rings="ring: pipe, b'hello, world'
ring: counter, 3
ring: pipe, b'', end
one shot: 1 harvested
one shot: 0 more
one shot: 1 when armed again"
in_order || rings="ring: not to be harvested on this platform"
tap_is "$(python3 "$examples/flowfd.py" 2>&1)" \
"ABI version 1, rate up to 1000000000, features 0x7ff
opened: 9 fit below a maximum of 10
opened: read 9
created: full
created: read 4, maximum 5
policies: 10 are too few
policies: 10 after the delay
policies: 1 that is urgent
policies: 60 there, 50 lost
policies: nothing left, without waiting
policies: the maximum is not above the count and both marks
ring: anything to harvest? False
$rings" "flowfd.py"
# A hundred signals a second, for five seconds; none makes a timeout begin again.
tap_is "$(PYTHONPATH=$examples python3 -B - 2>&1 <<'END'
import signal, time
import flowfd

def attempt(call, *arguments, **options):
    left = 500
    def handle(*_):
        nonlocal left
        left -= 1
        if left <= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        try:    # another error while the wait is interrupted
            empty.read_with(seconds=0)
        except BlockingIOError:
            pass
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        print(call(*arguments, **options))
    except TimeoutError:
        print("timeout", "in time" if left > 0 else "too late")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

with flowfd.Counter(maximum=4) as counter, flowfd.Counter() as empty:
    attempt(counter.read_with, seconds=0.2)
    counter.write(3)
    attempt(counter.write_with, 1, seconds=0.2)
    attempt(counter.read_with, seconds=0.2)
END
)" "timeout in time
timeout in time
3" "flowfd.py: signals while it waits for a time"
in_order || tap_skip_all "flowfd.py: rings" "to harvest one needs CPython on x86"

# New events between any two steps of a harvest: each access to the memory of the ring
# in turn triggers one. The index has one slot, so that a slot that is emptied too late
# loses the next entry.
output=$(cd "$examples" && python3 -B - 2>&1 <<'END'
import os, select
import flowfd

class Watched:
    """The words of a ring; the access with the number @at calls @then."""

    def __init__(self, words, at, then):
        self.words, self.left, self.then = words, at, then

    def step(self):
        self.left -= 1
        if self.left == 0:
            self.then()

    def __getitem__(self, place):
        value = self.words[place]
        self.step()
        return value

    def __setitem__(self, place, value):
        self.words[place] = value
        self.step()

def harvest(ring, words):
    taken, ring.words = 0, words
    while ring.wait(0):
        for reader in ring.harvest():
            taken += len(flowfd.read_all(reader)[0])
            words.step()
    return taken

steps = []
for at in range(1, 20):
    ring = flowfd.Ring(1)
    reader, writer = os.pipe2(os.O_NONBLOCK)
    ring.add(reader, select.EPOLLIN)
    os.write(writer, b"x")
    words = Watched(ring.words, at, lambda: os.write(writer, b"x"))
    taken = harvest(ring, words)
    if words.left > 0:
        break
    steps.append(taken)
    os.write(writer, b"x")
    if (taken, harvest(ring, words)) != (2, 1):
        print("lost: event after step", at)
print(len(steps), "steps")
END
)
tap_is "$output" "7 steps" "flowfd.py: an event at each step of a harvest"

# Pipes and counters, with a process for each that writes twice and then waits until
# both were read. The second write comes at any time while the consumer handles the
# first: if it is lost, that process waits for ever, and finally the consumer.
PYTHONPATH=$examples PYTHONDONTWRITEBYTECODE=1 python3 - <<'END'
import os, random, select, sys
import flowfd

FILES, BURSTS = 4, 1500

def produce(write, read, seed):
    random.seed(seed)
    for _ in range(BURSTS):
        write()
        for _ in range(random.randrange(2000)):
            pass
        write()
        read()
    os._exit(0)

ring = flowfd.Ring(FILES)
counts, done, children = {}, {}, []
for number in range(FILES):
    if number % 2:
        file = flowfd.Counter(flags=flowfd.NONBLOCK)
        write = file.write
    else:
        file, writer = os.pipe()
        os.set_blocking(file, False)
        write = lambda writer=writer: os.write(writer, b"x")
    ring.add(file, select.EPOLLIN)
    counts[file] = 0
    done[file] = flowfd.Counter()
    children.append(os.fork())
    if not children[-1]:
        produce(write, done[file].read, number)

entries = 0
while sum(counts.values()) < 2 * FILES * BURSTS:
    if not ring.wait(20):
        print("# lost after", list(counts.values()))
        sys.exit(1)
    for file in ring.harvest():
        entries += 1
        before = counts[file]
        if isinstance(file, flowfd.Counter):
            try:
                counts[file] += file.read()
            except BlockingIOError:
                pass
        else:
            counts[file] += len(flowfd.read_all(file)[0])
        if counts[file] > before and counts[file] % 2 == 0:
            done[file].write()
for pid in children:
    os.waitpid(pid, 0)
print("# harvested", 2 * FILES * BURSTS, "events in", entries, "entries")
sys.exit(any(count != 2 * BURSTS for count in counts.values()))
END
tap_is $? 0 "flowfd.py: nothing is lost"

output=$(cd "$examples" && python3 -B - 2>&1 <<'END'
import os, select
import flowfd

def attempt(call, *arguments):
    try:
        call(*arguments)
    except (OSError, ValueError, NotImplementedError) as error:
        print(type(error).__name__, error)

reader, writer = os.pipe2(os.O_NONBLOCK)
waiting, _ = os.pipe()
ring = flowfd.Ring(1)
attempt(ring.add, waiting, select.EPOLLIN)
attempt(ring.add, 99, select.EPOLLIN)
attempt(ring.add, reader, select.EPOLLIN | select.EPOLLEXCLUSIVE)
attempt(ring.add, os.open("/proc/self/exe", os.O_NONBLOCK), select.EPOLLIN)
os.set_blocking(ring.fd, False)
attempt(ring.add, ring, select.EPOLLIN)
attempt(ring.remove, reader)
attempt(ring.modify, reader, select.EPOLLIN)
ring.add(reader, select.EPOLLIN)
attempt(ring.add, reader, select.EPOLLIN)
attempt(ring.add, writer, select.EPOLLOUT)
attempt(flowfd.Ring, 0)
attempt(flowfd.Counter, 5, 5)
flowfd.DEVICE = "/dev/nothing"
attempt(flowfd.Counter)
flowfd.STORES_IN_ORDER = False
attempt(ring.harvest)
END
)
not_loaded="the flowfd module is not loaded: run 'modprobe flowfd' as root"
create="a count not below the maximum, a bucket on a semaphore or without capacity"
tap_is "$output" \
"ValueError a watched file must not block
OSError [Errno 9] Bad file descriptor
OSError [Errno 22] events may be EPOLLIN, EPOLLPRI, EPOLLOUT, EPOLLRDHUP and EPOLLONESHOT, not EPOLLEXCLUSIVE or EPOLLWAKEUP
PermissionError [Errno 1] this kind of file cannot be watched (regular file, directory, signalfd, binder)
OSError [Errno 40] an epoll, a ring or an io_uring cannot be watched
FileNotFoundError [Errno 2] the ring does not watch this file
FileNotFoundError [Errno 2] the ring does not watch this file
FileExistsError [Errno 17] the ring watches this file already: modify() changes that
OSError [Errno 28] the ring watches max_items files, as many as it was created for
OSError [Errno 22] $create, or max_items not between 1 and 1048576
OSError [Errno 22] $create, or max_items not between 1 and 1048576
FileNotFoundError [Errno 2] $not_loaded (package flowfd-dkms)
NotImplementedError to harvest a ring needs CPython on x86" "flowfd.py: errors"

# A pinned file is closed and its descriptor used again: the old watch gives no event,
# and its item is free for another file.
output=$(cd "$examples" && python3 -B - 2>&1 <<'END'
import os, select, socket
import flowfd

with flowfd.Ring(2) as ring:
    old = os.eventfd(0, os.EFD_NONBLOCK)
    kept = os.dup(old)
    ring.add(old, select.EPOLLIN)
    os.close(old)
    new = os.eventfd(0, os.EFD_NONBLOCK)
    ring.add(new, select.EPOLLIN)
    os.eventfd_write(kept, 1)
    print(old == new, list(ring.harvest()), len(ring.files))
    os.close(new)
    ring.remove(new)
    print(len(ring.files), len(ring.numbers))
    for _ in range(2):
        ring.add(os.eventfd(0, os.EFD_NONBLOCK), select.EPOLLIN)
ring.close()
print(ring.fd)

# A pipe is closed, and a socket gets its descriptor.
with flowfd.Ring(2) as ring:
    old, writer = os.pipe2(os.O_NONBLOCK)
    ring.add(old, select.EPOLLIN)
    os.close(old)
    new, other = socket.socketpair()
    new.setblocking(False)
    ring.add(new, select.EPOLLIN)
    try:
        ring.modify(old, select.EPOLLIN)
    except FileNotFoundError:
        print("not watched")
    ring.remove(old)
    other.send(b"x")
    print(old == new.fileno(), list(ring.harvest()) == [new], len(ring.files))
END
)
tap_is "$output" \
"True [] 1
0 0
-1
not watched
True True 1" "flowfd.py: files that were closed, and the end of a with statement"
tap_done
