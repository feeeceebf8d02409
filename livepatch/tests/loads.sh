#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# loads.sh DIR: loads and unloads the livepatch again and again while threads that
# fault, and that open and close files and epolls, never rest. TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source-path=SCRIPTDIR source=../../userspace/tests/tap.sh
. userspace/tests/tap.sh
# shellcheck source-path=SCRIPTDIR source=traffic.sh
. livepatch/tests/traffic.sh
name=flowfd_livepatch
loaded=/sys/kernel/livepatch/$name
rounds=${FLOWFD_LOADS:-50}

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

traffic_start "$1" 300
tap_ok "$rounds loads and unloads" all_rounds
traffic_end
tap_done
