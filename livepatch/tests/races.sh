#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# races.sh DIR: traffic for $FLOWFD_RACE_SECONDS, on a kernel that would speak up.
# Prints TAP.
set -u

# shellcheck source-path=SCRIPTDIR source=../../userspace/tests/tap.sh
. userspace/tests/tap.sh
# shellcheck source-path=SCRIPTDIR source=traffic.sh
. livepatch/tests/traffic.sh

traffic_start "$1" 10000
sleep "$FLOWFD_RACE_SECONDS"
traffic_end
tap_done
