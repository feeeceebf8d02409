#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tool.sh: functions of flowfd-livepatch that need neither a kernel nor a build root.
# Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
top=$PWD
cd "$(mktemp -d)" || exit
name=flowfd_livepatch
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. "$top/livepatch/loaded-livepatch.sh"

printf 'a\e]0;x\a\nb c' > ./comm
tap_is "$(task_name .)" "a?]0;x??b c" "a name with control characters"
tap_is "$(task_name /nothing)" "" "a task that has ended"
tap_done
