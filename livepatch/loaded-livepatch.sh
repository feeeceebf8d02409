# SPDX-License-Identifier: GPL-2.0-only
# What the running kernel says of livepatches, and of the tasks that they wait for. Sourced
# by flowfd-livepatch, which defines die. LIVEPATCH is the name of one, which is that of its
# module.
# shellcheck shell=bash disable=SC2154

sysfs=/sys/kernel/livepatch
modules=/sys/module
proc=/proc
# Seconds that load and unload wait. The kernel signals tasks that block the transition
# every 15 seconds.
patience=${FLOWFD_LIVEPATCH_PATIENCE:-60}

need_livepatching()
{
	[ -d "$sysfs" ] || die "this kernel cannot be livepatched (CONFIG_LIVEPATCH)"
}

# wait_for CONDITION...: false if the condition is not met within $patience seconds, by the time
# since the boot: the wall clock, and with it $SECONDS, can be set
wait_for()
{
	local now end
	read -r now _ < /proc/uptime
	end=$((${now%.*} + patience))
	until "$@"; do
		read -r now _ < /proc/uptime
		[ "${now%.*}" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# our_names DIRECTORY: prints which of ours are there. Without a process, which can fail: then
# there would seem to be none.
our_names()
{
	local path
	for path in "$1"/flowfd_livepatch*; do
		[ ! -d "$path" ] || echo "${path##*/}"
	done
}

# overridden LIVEPATCH: prints which of its functions later livepatches have, and theirs
# names. The kernel lists the newest module first.
overridden()
{
	local later function
	while read -r later _ && [ "$later" != "$1" ]; do
		{ [[ $later != flowfd_livepatch* ]] && is_enabled "$later"; } || continue
		for function in "$sysfs/$1"/*/*,*; do
			[ ! -d "$sysfs/$later${function#"$sysfs/$1"}" ] ||
				echo "${function##*/} $later"
		done
	done < "$proc/modules"
}

# is_enabled LIVEPATCH
is_enabled()
{
	local enabled
	{ read -r enabled < "$sysfs/$1/enabled"; } 2> /dev/null && [ "$enabled" = 1 ]
}

# in_force LIVEPATCH: not between the end of an unload's transition and the removal of the
# directory
in_force()
{
	local transition
	is_enabled "$1" && { read -r transition < "$sysfs/$1/transition"; } 2> /dev/null &&
		[ "$transition" = 0 ]
}

# is_gone LIVEPATCH
is_gone()
{
	[ ! -d "$sysfs/$1" ]
}

# is_settled LIVEPATCH
is_settled()
{
	is_gone "$1" || in_force "$1"
}

# Whether no livepatch is in transition.
all_settled()
{
	! grep -qs 1 "$sysfs"/*/transition
}

# has_no_module LIVEPATCH: the kernel lets go of a module a moment after its livepatch, so
# this tries to remove it
has_no_module()
{
	[ ! -d "$modules/$1" ] || rmmod "$1" 2> /dev/null
}

# remove_module LIVEPATCH [WHAT-BEFORE]: exits with an error if it does not go
remove_module()
{
	wait_for has_no_module "$1" || die "${2-}the module stays: $(rmmod "$1" 2>&1)"
}

# disable LIVEPATCH: begins its unload. The kernel refuses that while another livepatch is
# in transition.
disable()
{
	is_gone "$1" || echo 0 > "$sysfs/$1/enabled"
}

# task_name TASK: prints its name, which a user can choose, so that root's terminal gets
# no control characters
task_name()
{
	local name LC_ALL=C
	name=$(cat "$1/comm" 2> /dev/null) || true
	echo "${name//[![:print:]]/?}"
}

# task_stack TASK: prints the functions in which it sleeps
task_stack()
{
	sed 's/^\[<0>\] //; s/+.*//' "$1/stack" 2> /dev/null | head -n 4 | paste -sd ' ' || true
}

# blockers: prints the tasks that the transition waits for; after 20, only how many, as
# users can make very many. Only root can read their state.
blockers()
{
	local path task target='' state stack count=0
	for path in "$sysfs"/*/; do
		! grep -qs 1 "$path/transition" || target=$(cat "$path/enabled" 2> /dev/null) || true
	done
	[ "$target" ] || return 0
	for task in "$proc"/[0-9]*/task/[0-9]*; do
		# Without a process for each: the transition may be over before the end.
		{ read -r state < "$task/patch_state"; } 2> /dev/null || continue
		[ "$state" = $((1 - target)) ] || continue
		count=$((count + 1))
		[ $count -le 20 ] || continue
		stack=$(task_stack "$task")
		echo "  waits for ${task##*/} $(task_name "$task")${stack:+, in $stack}"
	done
	[ $count -le 20 ] || echo "  and for $((count - 20)) more"
}
