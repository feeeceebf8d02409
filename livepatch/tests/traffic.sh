#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# traffic.sh DIR: while the programs in DIR fault, and open, watch and close files and
# epolls, loads and unloads the livepatch again and again; on a kernel that has the
# patches in its source ($FLOWFD_PATCHED), only waits for $FLOWFD_RACE_SECONDS. Each
# program checks its own results. Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

. selftests/tap.sh
. livepatch/loaded-livepatch.sh
rounds=${FLOWFD_LOADS:-10}
tracing=/sys/kernel/tracing
output=$(mktemp)

# program COMMAND...: runs it again and again, with lower priority than this script
program()
{
	while [ ! -e "$output.stop" ]; do
		nice -n 19 "$@" || echo failed
	done
}

# Not with flowfd-livepatch itself: its checks would take most of the time.
one_round()
{
	insmod "$module" && wait_for in_force "$name" &&
		echo 0 > "$sysfs/$name/enabled" &&
		wait_for is_gone "$name" && wait_for has_no_module "$name"
}

all_rounds()
{
	local i
	for ((i = 0; i < rounds; i++)); do
		if ! one_round; then
			echo "in round $i:"
			grep -s . "$sysfs/$name"/{enabled,transition}
			return 1
		fi
	done
}

# slow_down FUNCTION: makes each call record a stack trace first. The time between two
# calls becomes long enough for other tasks to interfere.
slow_down()
{
	[ -e "$tracing/events" ] || mount -t tracefs tracefs "$tracing"
	echo "$1*" > "$tracing/set_ftrace_filter" &&
		echo 1 > "$tracing/options/func_stack_trace" &&
		echo function > "$tracing/current_tracer"
}

race_ms=300
if [ -z "${FLOWFD_PATCHED-}" ]; then
	module=$FLOWFD_LIVEPATCH_DIR/$(uname -r)/flowfd_livepatch.ko
	name=$(modinfo -F name "$module")
fi
if [ "${FLOWFD_PATCHED-}" ]; then
	race_ms=10000
	tap_ok "slow down the search for watchers of epolls" \
		slow_down ep_get_upwards_depth_proc
fi
program "$1/uffd-bench" 4 2 50 > "$output" 2>&1 &
FLOWFD_STRESS_MS=$race_ms program "$1/epoll" > "$output.epoll" 2>&1 &
if [ "${FLOWFD_PATCHED-}" ]; then
	sleep "$FLOWFD_RACE_SECONDS"
	tap_ok "there were searches" \
		grep -q ': ep_get_upwards_depth_proc' "$tracing/trace"
else
	tap_ok "$rounds loads and unloads" all_rounds
fi
touch "$output.stop"
wait
tap_is "$(grep -v 'faults,' "$output")" "" "no fault is missed"
tap_ok "there were faults" grep -q 'faults,' "$output"
tap_is "$(grep -E '^(not ok|failed)|Expected|terminated' "$output.epoll")" "" \
	"files and epolls are closed"
tap_ok "there were races" grep -q '[0-9] rounds' "$output.epoll"
echo "# $(grep -c 'faults,' "$output") rounds of faults," \
	"$(grep -c '^TAP' "$output.epoll") of epolls"
tap_done
