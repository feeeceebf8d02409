# SPDX-License-Identifier: GPL-2.0-only
# For the test scripts beside it, with tap.sh: programs that fault, and that open, watch
# and close files and epolls, until the script ends them; each checks its own results.
# shellcheck shell=bash

traffic_output=$(mktemp)

# traffic_program COMMAND...: runs it again and again, with lower priority than the script
traffic_program()
{
	while [ ! -e "$traffic_output.stop" ]; do
		nice -n 19 "$@" || echo failed
	done
}

# traffic_start DIR MS: starts the programs in DIR; each race of epoll takes MS
traffic_start()
{
	traffic_program "$1/uffd-bench" 4 2 50 > "$traffic_output" 2>&1 &
	FLOWFD_STRESS_MS=$2 traffic_program "$1/epoll" > "$traffic_output.epoll" 2>&1 &
}

traffic_end()
{
	touch "$traffic_output.stop"
	wait
	tap_is "$(grep -v 'faults,' "$traffic_output")" "" "no fault is missed"
	tap_ok "there were faults" grep -q 'faults,' "$traffic_output"
	tap_is "$(grep -E '^(not ok|failed)|Expected|terminated' \
		"$traffic_output.epoll")" "" \
		"files and epolls are closed"
	tap_ok "there were connections" \
		grep -q '[1-9] connections' "$traffic_output.epoll"
	echo "# $(grep -c 'faults,' "$traffic_output") rounds of faults," \
		"$(grep -c '^TAP' "$traffic_output.epoll") of epolls"
}
