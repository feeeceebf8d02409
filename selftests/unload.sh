#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads the module: refused while a counter is open, clean otherwise,
# also straight after a timer was armed or a ring was at work. Leaves it loaded.
# The module to load is in FLOWFD_KO; it must be loaded when this starts.
set -u

rounds=${FLOWFD_LOADS:-3}
number=0
status=0

# report NAME: one line of TAP about the command before it
report()
{
	local result=$?
	number=$((number + 1))
	if [ "$result" = 0 ]; then
		echo "ok $number unload.$1"
	elif [ "$result" = 4 ]; then
		echo "ok $number unload.$1 # SKIP the kernel does not inject faults"
	else
		echo "not ok $number unload.$1"
		status=1
	fi
}

loaded()
{
	[ -d /sys/module/flowfd ]
}

# The device node is made by devtmpfs, and may take a moment.
insert()
{
	local n
	insmod "$FLOWFD_KO" || return
	for n in 1 2 3 4 5 6 7 8 9 10; do
		[ -c /dev/flowfd ] && return
		sleep 0.1
	done
	return 1
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

again_and_again()
{
	local n
	for ((n = 0; n < rounds; n++)); do
		insert || return
		printf '\1\0\0\0\0\0\0\0' > /dev/flowfd || return
		rmmod flowfd || return
	done
}

goes_after_a_timer()
{
	local n
	for ((n = 0; n < rounds; n++)); do
		insert || return
		"$(dirname "$0")/unload.d/armed" || return
		rmmod flowfd || return
	done
}

goes_after_a_ring()
{
	local n
	for ((n = 0; n < rounds; n++)); do
		insert || return
		"$(dirname "$0")/unload.d/watching" || return
		rmmod flowfd || return
	done
}

# The loader's own allocations are among those that fail.
loads_while_memory_fails()
{
	goes_when_closed && "$(dirname "$0")/unload.d/loading" "$FLOWFD_KO"
}

# KCSAN also tells of races that are not ours; lab/boot looks at its reports.
nothing_in_the_log()
{
	local found
	found=$(dmesg | awk -v mark="$mark" '{ log = log $0 "\n" }
			index($0, mark) { log = "" }
			END { printf "%s", log }' |
		grep -E 'BUG|WARNING|Oops|leak|Objects remaining|list_del' |
		grep -vE 'module verification failed|BUG: KCSAN')
	[ -z "$found" ] && return
	printf '%s\n' "$found" | sed 's/^/# /'
	return 1
}

echo "TAP version 13"
if [ ! -e "${FLOWFD_KO-}" ]; then
	echo "1..0 # SKIP FLOWFD_KO does not name the module"
	exit 0
fi
echo "1..7"
loaded || insert || exit 1
mark="flowfd: unload.sh $$ begins"
echo "$mark" > /dev/kmsg
refused_while_open
report refused_while_open
goes_when_closed
report goes_when_closed
again_and_again
report again_and_again
goes_after_a_timer
report goes_after_a_timer
goes_after_a_ring
report goes_after_a_ring
loaded || insert
loads_while_memory_fails
report loads_while_memory_fails
nothing_in_the_log
report nothing_in_the_log
loaded || insert || status=1
exit $status
