#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# loads.sh DIR: loads and unloads the livepatch again and again while threads that
# fault, and that open and close files and epolls, never rest. TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source-path=SCRIPTDIR source=../../userspace/tests/tap.sh
. userspace/tests/tap.sh
name=flowfd_livepatch
loaded=/sys/kernel/livepatch/$name
rounds=${FLOWFD_LOADS:-50}
output=$(mktemp)

# Traffic that ends only when it is told to, and checks what it does. It leaves the
# processors to who loads and unloads, and takes all the rest.
traffic()
{
	while [ ! -e "$output.stop" ]; do
		nice -n 19 "$@" || echo failed
	done
}

traffic "$1/uffd-bench" 4 2 50 > "$output" 2>&1 &
FLOWFD_STRESS_MS=300 traffic "$1/epoll" > "$output.epoll" 2>&1 &

# within SECONDS CONDITION...
within()
{
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		[ "$SECONDS" -lt "$end" ] || { echo "not in $1 s: ${*:2}"; return 1; }
		sleep 0.1
	done
}

in_force()
{
	local transition
	read -r transition < "$loaded/transition" && [ "$transition" = 0 ]
}

is_gone()
{
	[ ! -d "$loaded" ]
}

# Without flowfd-livepatch: what it does beside this would be most of the time.
all_rounds()
{
	local i
	for ((i = 0; i < rounds; i++)); do
		insmod "$FLOWFD_LIVEPATCH_DIR/$(uname -r)/$name.ko" &&
			within 60 in_force && echo 0 > "$loaded/enabled" &&
			within 60 is_gone && within 60 rmmod "$name" || return
	done
}

tap_ok "$rounds loads and unloads" all_rounds
touch "$output.stop"
wait
tap_is "$(grep -v 'faults,' "$output")" "" "no fault is missed meanwhile"
tap_ok "there were faults" grep -q 'faults,' "$output"
tap_is "$(grep -E '^(not ok|failed)' "$output.epoll")" "" \
	"files and epolls are closed meanwhile"
tap_ok "there were connections" grep -q '[1-9] connections' "$output.epoll"
tap_done
