#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# loads.sh DIR: loads and unloads the livepatch again and again under traffic. Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

. selftests/tap.sh
# shellcheck source-path=SCRIPTDIR source=traffic.sh
. livepatch/tests/traffic.sh
name=flowfd_livepatch
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. livepatch/loaded-livepatch.sh
rounds=${FLOWFD_LOADS:-50}

# Not with flowfd-livepatch itself: its checks would take most of the time.
one_round()
{
	insmod "$FLOWFD_LIVEPATCH_DIR/$(uname -r)/$name.ko" &&
		wait_for in_force && echo 0 > "$loaded/enabled" &&
		wait_for is_gone && wait_for remove_module
}

all_rounds()
{
	local i
	for ((i = 0; i < rounds; i++)); do
		if ! one_round; then
			echo "in round $i:"
			grep -s . "$loaded"/{enabled,transition}
			return 1
		fi
	done
}

traffic_start "$1" 300
tap_ok "$rounds loads and unloads" all_rounds
traffic_end
tap_done
