#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# races.sh DIR: traffic for $FLOWFD_RACE_SECONDS, on a debug kernel. Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

. selftests/tap.sh
# shellcheck source-path=SCRIPTDIR source=traffic.sh
. livepatch/tests/traffic.sh
tracing=/sys/kernel/tracing

# slow_down FUNCTION: makes each call record a stack trace first. The time between two
# calls becomes long enough for other tasks to interfere.
slow_down()
{
	[ -e "$tracing/events" ] || mount -t tracefs tracefs "$tracing"
	echo "$1*" > "$tracing/set_ftrace_filter" &&
		echo 1 > "$tracing/options/func_stack_trace" &&
		echo function > "$tracing/current_tracer"
}

tap_ok "slow down the search for watchers of epolls" slow_down ep_get_upwards_depth_proc
traffic_start "$1" 10000
sleep "$FLOWFD_RACE_SECONDS"
traffic_end
tap_ok "there were searches" grep -q ': ep_get_upwards_depth_proc' "$tracing/trace"
tap_done
