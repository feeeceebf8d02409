#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# traffic.sh DIR: while the programs in DIR fault, and open, watch and close files and
# epolls, loads and unloads the livepatch again and again. Each program checks its own
# results. Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

. selftests/tap.sh
. livepatch/loaded-livepatch.sh
rounds=${FLOWFD_LOADS:-10}
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

module=$FLOWFD_LIVEPATCH_DIR/$(uname -r)/flowfd_livepatch.ko
name=$(modinfo -F name "$module")
program "$1/uffd-bench" 4 2 50 > "$output" 2>&1 &
FLOWFD_STRESS_MS=300 program "$1/epoll" > "$output.epoll" 2>&1 &
tap_ok "$rounds loads and unloads" all_rounds
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
