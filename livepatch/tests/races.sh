#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# races.sh DIR: traffic for $FLOWFD_RACE_SECONDS, on a kernel that would speak up.
# Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source-path=SCRIPTDIR source=../../userspace/tests/tap.sh
. userspace/tests/tap.sh
# shellcheck source-path=SCRIPTDIR source=traffic.sh
. livepatch/tests/traffic.sh
tracing=/sys/kernel/tracing

# slowed FUNCTION: it begins with a trace of the stack, which takes longer than what
# the function does between two instructions that others could come between.
slowed()
{
	[ -e "$tracing/events" ] || mount -t tracefs tracefs "$tracing"
	echo "$1*" > "$tracing/set_ftrace_filter" &&
		echo 1 > "$tracing/options/func_stack_trace" &&
		echo function > "$tracing/current_tracer"
}

tap_ok "who looks for watchers of epolls is slow" slowed ep_get_upwards_depth_proc
traffic_start "$1" 10000
sleep "$FLOWFD_RACE_SECONDS"
traffic_end
tap_ok "somebody looked" grep -q ': ep_get_upwards_depth_proc' "$tracing/trace"
tap_done
