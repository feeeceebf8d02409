# SPDX-License-Identifier: GPL-2.0-only
# What the running kernel says of livepatches, and of the tasks that they wait for. Sourced
# by flowfd-livepatch, which defines die, after built-module.sh. LIVEPATCH is the name of
# one, which is that of its module.
# shellcheck shell=bash disable=SC2154

sysfs=/sys/kernel/livepatch
modules=/sys/module
proc=/proc
# The newest module first.
module_list=/proc/modules
uptime=/proc/uptime
# Seconds that load and unload wait. The kernel signals tasks that block the transition
# every 15 seconds.
patience=${FLOWFD_LIVEPATCH_PATIENCE:-60}

need_livepatching()
{
	[ -d "$sysfs" ] || die "this kernel cannot be livepatched (CONFIG_LIVEPATCH)"
}

# Prints the seconds since the boot. The wall clock, and with it $SECONDS, can be set.
now()
{
	local now
	read -r now _ < "$uptime"
	echo "${now%.*}"
}

# wait_for CONDITION...: false if the condition is not met within $patience seconds
wait_for()
{
	local end=$(($(now) + patience))
	until "$@"; do
		[ "$(now)" -lt "$end" ] || return 1
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

# Prints the other livepatches: not those of flowfd.
other_names()
{
	local path
	for path in "$sysfs"/*/; do
		[[ ! -d $path || ${path#"$sysfs/"} = flowfd_livepatch* ]] || basename "$path"
	done
}

# later_names LIVEPATCH: prints the other livepatches that came after it
later_names()
{
	local name
	while read -r name _ && [ "$name" != "$1" ]; do
		[[ $name = flowfd_livepatch* ]] || ! is_enabled "$name" || echo "$name"
	done < "$module_list"
}

# overridden LIVEPATCH: prints which of its functions later livepatches patch, too, and
# whose are in force
overridden()
{
	local later function
	for later in $(later_names "$1"); do
		for function in "$sysfs/$1"/*/*,*; do
			[ ! -d "$sysfs/$later${function#"$sysfs/$1"}" ] ||
				echo "${function##*/} $later"
		done
	done
}

# in_force LIVEPATCH: not between the end of an unload's transition and the removal of the
# directory
in_force()
{
	[ "$(cat "$sysfs/$1/enabled" "$sysfs/$1/transition" 2> /dev/null)" = $'1\n0' ]
}

# is_enabled LIVEPATCH
is_enabled()
{
	[ "$(cat "$sysfs/$1/enabled" 2> /dev/null)" = 1 ]
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

# Prints the livepatches in transition: the kernel has one transition at a time.
in_transition()
{
	local path
	for path in "$sysfs"/*/; do
		! grep -qs 1 "$path/transition" || basename "$path"
	done
}

# Whether no livepatch is in transition.
all_settled()
{
	! grep -qs 1 "$sysfs"/*/transition
}

# has_no_module LIVEPATCH: the kernel releases the module a moment after the livepatch, and
# only after that the module releases itself. So this tries to remove it.
has_no_module()
{
	[ ! -d "$modules/$1" ] || { retire "$1" && rmmod "$1" 2> /dev/null; }
}

# is_loaded_from LIVEPATCH MODULE: whether the loaded module has the same build ID
is_loaded_from()
{
	local id
	id=$(hex "$modules/$1/notes/.note.gnu.build-id" 2> /dev/null) && [ "$id" ] &&
		[[ $(hex "$2") = *"$id"* ]]
}

# retire LIVEPATCH: prepares the fix of epoll for other code, where it is part of the
# livepatch (docs/livepatch.md). May wait; ends with this process. In the foreground: a
# terminal's signals must reach it, or the unload would go on after them.
retire()
{
	local attribute=$modules/$1/retire
	[ ! -e "$attribute" ] ||
		timeout --foreground "$patience" sh -c 'echo 1 > "$1"' sh "$attribute" \
			2> /dev/null
}

# task_name TASK: prints its name, which a user can choose, so that root's terminal gets
# no control characters
task_name()
{
	local name LC_ALL=C
	name=$(cat "$1/comm" 2> /dev/null) || true
	echo "${name//[![:print:]]/?}"
}

# blockers LIVEPATCH COMMAND [MAX]: calls the command for each task that has not reached the
# target state of its transition, with its ID, name, and stack; after MAX of them, prints
# how many more there are: users can make very many. Only root can read their
# state. During another livepatch's transition the states are that one's.
blockers()
{
	local task target state count=0
	grep -qs 1 "$sysfs/$1/transition" || return 0
	target=$(cat "$sysfs/$1/enabled" 2> /dev/null) || return 0
	for task in "$proc"/[0-9]*/task/[0-9]*; do
		# Without a process for each: the transition may be over before the end.
		{ read -r state < "$task/patch_state"; } 2> /dev/null || continue
		[ "$state" = $((1 - target)) ] || continue
		count=$((count + 1))
		[ $count -le "${3:-$count}" ] || continue
		"$2" "${task##*/}" "$(task_name "$task")" "$(task_stack "$task")"
	done
	[ $count -le "${3:-$count}" ] || echo "  and for $((count - $3)) more"
}

# task_stack TASK: prints the functions in which it sleeps
task_stack()
{
	sed 's/^\[<0>\] //; s/+.*//' "$1/stack" 2> /dev/null | head -n 4 | paste -sd ' ' || true
}

# print_blocker ID NAME STACK
print_blocker()
{
	printf '  waits for %s %s%s\n' "$1" "$2" "${3:+, in $3}"
}

# version_of LIVEPATCH: prints it
version_of()
{
	local version
	{ read -r version < "$modules/$1/version"; } 2> /dev/null || version="an old version"
	echo "$version"
}
