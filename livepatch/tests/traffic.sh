# SPDX-License-Identifier: GPL-2.0-only
# For the test scripts beside it, with tap.sh: threads that fault, and that open,
# watch and close files and epolls, for as long as the script wants; each program
# checks what it does.
# shellcheck shell=bash

traffic_output=$(mktemp)

# They leave the processors to the script, and take all the rest.
traffic_program()
{
	while [ ! -e "$traffic_output.stop" ]; do
		nice -n 19 "$@" || echo failed
	done
}

# traffic_start DIR MS: the programs are in DIR; MS is for each race of one
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
