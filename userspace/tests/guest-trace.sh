#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-trace.sh BUILD
# The tracepoints of the module, as root in a virtual machine: names, fields and order, as
# docs/statistics.md has them; perf and the bpftrace scripts in examples/trace. Prints TAP.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/../.." && pwd)
scripts=$top/userspace/examples/trace
traced=$build/tests/traced
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

[ -e /dev/flowfd ] || tap_skip_all "tracepoints" "the module is not loaded"
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing 2> /dev/null
events=/sys/kernel/tracing/events/flowfd
[ -e /sys/kernel/tracing/events ] ||
	tap_skip_all "tracepoints" "this kernel has none that can be enabled"

# The table in the document, and what the kernel says: each event with its fields.
documented() {
	sed -n 's/^| `\(flowfd_[a-z_]*\)` | \(`[^|]*`\) |.*/\1 \2/p' \
		"$top/docs/statistics.md" | tr -d '`,' | sort
}

present() {
	for event in "$events"/flowfd_*; do
		echo "${event##*/} $(sed -n '/common_/d; s/.*field:.* \([a-z_]*\);.*offset.*/\1/p' \
			"$event/format" | tr '\n' ' ' | sed 's/ $//')"
	done | sort
}

tap_is "$(present)" "$(documented)" "events and fields are those of docs/statistics.md"

# In a buffer of its own, as others may trace as well. Counters and the ring are numbered
# as they appear.
lines() {
	sed -n 's/.*: \(flowfd_[a-z_]*: .*\)/\1/p' "$1" | awk '{
		for (i = 1; i <= NF; i++) if (split($i, pair, "=") == 2 &&
		    (pair[1] == "counter" || pair[1] == "ring")) {
			if (!($i in seen)) seen[$i] = ++number[pair[1]]
			$i = pair[1] "=" seen[$i]
		} else if (pair[1] == "fd")
			$i = "fd=N"
		print }'
}

wanted='flowfd_write: counter=1 value=3 count=3
flowfd_read: counter=1 value=3 count=0
flowfd_write: counter=1 value=1 count=1
flowfd_wakeup: counter=1 count=1 slept=0
flowfd_read: counter=1 value=1 count=0
flowfd_write: counter=1 value=2 count=2
flowfd_held_back: counter=1 count=2 reason=mark
flowfd_write: counter=1 value=1 count=3
flowfd_wakeup: counter=1 count=3 slept=0
flowfd_read: counter=1 value=3 count=0
flowfd_write: counter=1 value=1 count=1
flowfd_wakeup: counter=1 count=1 slept=0
flowfd_write: counter=1 value=1 count=2
flowfd_held_back: counter=1 count=2 reason=bucket
flowfd_wakeup: counter=1 count=2 slept=0
flowfd_timer: counter=1 count=2 wakes=1
flowfd_read: counter=1 value=2 count=0
flowfd_counter_close: counter=2 writes=0 reads=0 wakeups=0
flowfd_write: counter=1 value=1 count=1
flowfd_wakeup: counter=1 count=1 slept=0
flowfd_publish: ring=1 item=0 fd=N events=0x1 coalesced=0
flowfd_write: counter=1 value=1 count=2
flowfd_wakeup: counter=1 count=2 slept=0
flowfd_publish: ring=1 item=0 fd=N events=0x1 coalesced=1
flowfd_wait_begin: ring=1 wanted=1 pending=1
flowfd_wait_end: ring=1 result=1 slept=0
flowfd_wait_begin: ring=1 wanted=1 pending=0
flowfd_wait_end: ring=1 result=0 slept=1
flowfd_ring_close: ring=1 published=1
flowfd_counter_close: counter=1 writes=8 reads=4 wakeups=6'

instance=/sys/kernel/tracing/instances/flowfd-test
mkdir "$instance"
echo 1 > "$instance/events/flowfd/enable"
tap_ok "runs" "$traced"
echo 0 > "$instance/events/flowfd/enable"
cp "$instance/trace" "$here/trace"
rmdir "$instance"
tap_is "$(lines "$here/trace")" "$wanted" "events, in order"

if command -v perf > /dev/null; then
	perf stat -x ' ' -o "$here/stat" -e flowfd:flowfd_write,flowfd:flowfd_read \
		-e flowfd:flowfd_held_back,flowfd:flowfd_publish "$traced" 2>&1
	tap_is "$(awk '/flowfd:/ { for (i = 2; i <= NF; i++) if ($i ~ /^flowfd:/)
		print $i, $1 }' "$here/stat")" "flowfd:flowfd_write 8
flowfd:flowfd_read 4
flowfd:flowfd_held_back 2
flowfd:flowfd_publish 2" "perf stat counts them"
	perf record -q -a -o "$here/data" -e 'flowfd:*' "$traced" > "$here/record" 2>&1
	perf script -i "$here/data" -F event,trace 2> /dev/null |
		sed 's/^ *flowfd:\(flowfd_[a-z_]*\): */: \1: /' > "$here/script"
	tap_is "$(lines "$here/script")" "$wanted" "perf script shows them"
else
	tap_skip "perf" "it is not installed"
fi

# trace SCRIPT COMMAND...: what a bpftrace script prints
trace() {
	script=$1
	shift
	timeout 250 bpftrace "$scripts/$script" -c "$*" > "$here/out" 2> "$here/err"
	tap_is "$?" 0 "$script: $(tr '\n' ' ' < "$here/err")"
	sed 's/^/# /' "$here/out"
}

# numbers MAP: the sum of its numbers for the program that was traced
numbers() {
	awk -v map="@$1[traced," 'index($0, map) == 1 { sum += $NF } END { print sum + 0 }' \
		"$here/out"
}

if command -v bpftrace > /dev/null && [ -e /sys/kernel/tracing/uprobe_events ]; then
	trace writers.bt "$traced"
	tap_is "$(numbers writes)" 8 "writers.bt counts writes"
	tap_is "$(numbers values)" 11 "and sums values"
	# The one of the timer is in the name of whatever task ran.
	trace wakers.bt "$traced"
	tap_is "$(numbers held_back)" 2 "wakers.bt counts what was held back"
	tap_is "$(awk '/^@wakeups\[/ { sum += $NF } END { print sum + 0 }' "$here/out")" 6 \
		"and wakeups"
	tap_is "$(awk '/^@timer\[/ { sum += $NF } END { print sum + 0 }' "$here/out")" 1 \
		"and those of the timer"
	trace ring-latency.bt "$traced"
	tap_is "$(grep -c '^@microseconds' "$here/out")" 1 "ring-latency.bt has a histogram"
	tap_is "$(awk '/^\[/ { n = $0; sub(/^[^)\]]*[)\]] */, "", n); sub(/ .*/, "", n)
		sum += n } END { print sum + 0 }' "$here/out")" 1 \
		"of the wait that finds something"
else
	tap_skip "bpftrace" "it is not installed, or the kernel cannot run it"
fi
tap_done
