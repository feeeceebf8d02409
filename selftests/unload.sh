#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads the module: refused while a counter is open, clean otherwise,
# also straight after a timer was armed or a ring was at work. Leaves it loaded. What the
# kernel reports meanwhile is for 'run' and lab/boot to find.
# The module to load is in FLOWFD_KO; it must be loaded when this starts.
# shellcheck disable=SC2317 # tap_ok calls the functions below
set -u
called=$(dirname "$0")/unload.d
# shellcheck source=selftests/tap.sh
. "$called/tap.sh"

loaded()
{
	[ -d /sys/module/flowfd ]
}

insert()
{
	insmod "$FLOWFD_KO" && [ -c /dev/flowfd ]
}

refused_while_open()
{
	local message
	exec 3<> /dev/flowfd
	message=$(rmmod flowfd 2>&1)
	local result=$?
	exec 3>&-
	[ "$result" != 0 ] && loaded && [[ $message = *"in use"* ]]
}

goes_when_closed()
{
	rmmod flowfd && ! loaded && [ ! -e /dev/flowfd ]
}

# goes_after COMMAND...: that has used it
goes_after()
{
	local n
	for ((n = 0; n < ${FLOWFD_LOADS:-3}; n++)); do
		insert && "$@" && rmmod flowfd || return
	done
}

write_to_it()
{
	printf '\1\0\0\0\0\0\0\0' > /dev/flowfd
}

[ -e "${FLOWFD_KO-}" ] || tap_skip_all "unload" "FLOWFD_KO does not name the module"
loaded || insert || exit 1
tap_ok "refused while a counter is open" refused_while_open
tap_ok "goes when it is closed" goes_when_closed
tap_ok "again and again" goes_after write_to_it
tap_ok "goes after a timer" goes_after "$called/left" timers
tap_ok "goes after bridges" goes_after "$called/left" bridges
tap_ok "goes after a ring" goes_after "$called/left" rings
loaded || insert
tap_ok "goes" goes_when_closed
# The loader's own allocations are among those that fail.
output=$("$called/loading" "$FLOWFD_KO" 2>&1)
result=$?
[ -z "$output" ] || echo "$output"
if [ "$result" = 4 ]; then
	tap_skip "loads while memory fails" "the kernel does not inject faults"
else
	tap_is "$result" 0 "loads while memory fails"
fi
tap_ok "loads again" eval 'loaded || insert'
tap_done
