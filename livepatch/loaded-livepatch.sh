# SPDX-License-Identifier: GPL-2.0-only
# The livepatch in the running kernel: load, unload, status. Sourced by flowfd-livepatch,
# which defines say, die and need_root, after built-module.sh. LIVEPATCH is the name of
# one, which is that of its module.
# shellcheck shell=bash disable=SC2154

sysfs=/sys/kernel/livepatch
modules=/sys/module
lock_file=/run/flowfd-livepatch.lock
# Seconds that load and unload wait. The kernel signals tasks that block the transition
# every 15 seconds.
patience=${FLOWFD_LIVEPATCH_PATIENCE:-60}

need_livepatching()
{
	[ -d "$sysfs" ] || die "this kernel cannot be livepatched (CONFIG_LIVEPATCH)"
}

# wait_for CONDITION...: false if the condition is not met within $patience seconds
wait_for()
{
	local end=$((SECONDS + patience))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# our_names DIRECTORY: prints which of ours are there
our_names()
{
	local path
	for path in "$1"/flowfd_livepatch*/; do
		[ ! -d "$path" ] || basename "$path"
	done
}

# Prints the other livepatches.
other_names()
{
	local path
	for path in "$sysfs"/*/; do
		[[ ! -d $path || ${path#"$sysfs/"} = flowfd_livepatch* ]] || basename "$path"
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

# Whether no livepatch is in transition: the kernel has one transition at a time.
all_settled()
{
	! cat "$sysfs"/*/transition 2> /dev/null | grep -q 1
}

# has_no_module LIVEPATCH: the kernel releases the module a moment after the livepatch, so
# this tries to remove it
has_no_module()
{
	[ ! -d "$modules/$1" ] || rmmod "$1" 2> /dev/null
}

# is_loaded_from LIVEPATCH MODULE: whether the loaded module has the same build ID
is_loaded_from()
{
	local id
	id=$(hex "$modules/$1/notes/.note.gnu.build-id" 2> /dev/null) && [ "$id" ] &&
		[[ $(hex "$2") = *"$id"* ]]
}

# Waits until no other load or unload runs. The lock ends with this process.
lock()
{
	exec 8> "$lock_file"
	flock -w $((2 * patience)) 8 || die "another load or unload is running"
}

# retire LIVEPATCH: prepares the fix of epoll for other code, where it is part of the
# livepatch (docs/livepatch.md). May wait; ends with this process.
retire()
{
	local attribute=$modules/$1/retire
	[ ! -e "$attribute" ] || timeout "$patience" sh -c 'echo 1 > "$1"' sh "$attribute"
}

# remove_rest LIVEPATCH: removes a module whose livepatch is gone: another has replaced it,
# or an unload has timed out.
remove_rest()
{
	[ -d "$modules/$1" ] || return 0
	retire "$1" && wait_for has_no_module "$1"
}

# check_others MODULE: exits with an error if another livepatch patches a function that
# this one does: its fix would no longer be in force.
check_others()
{
	local functions other function
	functions=" $(field "$1" flowfd_functions) "
	for other in $(other_names); do
		for function in "$sysfs/$other"/*/*,*; do
			function=${function##*/}
			function=${function%,*}
			[[ $functions != *" $function "* ]] ||
				die "the livepatch $other patches $function, too:" \
					"'load --override' puts this one in its place"
		done
	done
}

# take_back LIVEPATCH: ends a transition that does not come to an end. As long as there is
# one, no livepatch can be loaded or unloaded.
take_back()
{
	local blockers
	blockers=$(print_blockers "$1")
	! is_enabled "$1" || echo 0 > "$sysfs/$1/enabled"
	if wait_for is_gone "$1" && remove_rest "$1"; then
		die "not in force for all tasks after $patience s, and taken back." \
			"It waited for:"$'\n'"$blockers"
	fi
	die "neither in force nor taken back after 2 * $patience s:" \
		"'flowfd-livepatch status' shows for which tasks; the kernel goes on"
}

# insert LIVEPATCH MODULE OVERRIDE
insert()
{
	check_signature "$2"
	[ "$3" ] || check_others "$2"
	remove_rest "$1" || die "the module is still in use"
	wait_for all_settled || die "another livepatch is in transition"
	insmod "$2" || die "the kernel refused the module: see dmesg"
}

# load DIR [OVERRIDE]: the command; DIR is the kernel's build directory. A build that is
# in force already is replaced by the new one: at no time is none in force.
load()
{
	local module=$1/$file new old version
	need_root
	need_livepatching
	check_fit "$1"
	version=$(field "$module" version)
	! is_outdated "$version" "$(uname -r)" ||
		say "warning: $module is outdated: build again" >&2
	new=$(field "$module" name)
	lock
	# The unversioned name is of builds that replace all livepatches, and do not
	# notice when another takes over.
	is_gone flowfd_livepatch ||
		die "a livepatch of an old version is loaded: unload it first"
	if is_gone "$new"; then
		insert "$new" "$module" "${2-}"
	elif ! is_enabled "$new"; then
		die "it is being unloaded: see status"
	elif ! is_loaded_from "$new" "$module"; then
		die "another build of it is loaded: unload it first"
	fi
	wait_for in_force "$new" || take_back "$new"
	for old in $(our_names "$sysfs"); do
		[ "$old" = "$new" ] || unload_one "$old"
	done
	say "in force"
}

# unload_one LIVEPATCH
unload_one()
{
	if is_enabled "$1"; then
		retire "$1" || die "$1: tasks do not leave its critical sections"
		grep -qs 1 "$sysfs/$1/transition" || wait_for all_settled ||
			die "another livepatch is in transition"
		echo 0 > "$sysfs/$1/enabled"
	fi
	wait_for is_gone "$1" || die "not unloaded from all tasks after $patience s:" \
		"'flowfd-livepatch status' shows which; run unload again"
	remove_rest "$1" || die "the module is still in use"
}

# The command.
unload()
{
	local name names
	need_root
	need_livepatching
	lock
	names=$(our_names "$modules")
	[ "$names" ] || die "not loaded"
	for name in $names; do
		unload_one "$name"
	done
	say "unloaded"
}

# task_name TASK: prints its name, which a user can choose, so that root's terminal gets
# no control characters
task_name()
{
	local name LC_ALL=C
	name=$(cat "$1/comm" 2> /dev/null) || true
	echo "${name//[![:print:]]/?}"
}

# print_blockers LIVEPATCH: prints the tasks that have not reached the target state of the
# transition. Only root can read their state.
print_blockers()
{
	local task target state
	target=$(cat "$sysfs/$1/enabled")
	for task in /proc/[0-9]*/task/[0-9]*; do
		# Without a process for each: the transition may be over before the end.
		{ read -r state < "$task/patch_state"; } 2> /dev/null || continue
		[ "$state" = $((1 - target)) ] || continue
		printf '  waits for %s %s\n' "${task##*/}" "$(task_name "$task")"
	done
}

# print_state LIVEPATCH
print_state()
{
	if in_force "$1"; then
		say "in force"
	elif is_enabled "$1"; then
		say "coming into force"
		print_blockers "$1"
	else
		say "being unloaded"
		print_blockers "$1"
	fi
}

# print_details LIVEPATCH
print_details()
{
	local version function
	version=$(cat "$modules/$1/version" 2> /dev/null) || version="an old version"
	echo "  $1, version $version"
	! is_outdated "$version" "$(uname -r)" || echo "  outdated: build again, and load"
	for function in "$sysfs/$1"/*/*,*; do
		echo "  patches ${function##*/}"
	done
	[ "$(cat "$modules/$1/retire" 2> /dev/null)" != 1 ] ||
		echo "  closes take epmutex, since another livepatch has come:" \
			"unload and load"
}

# The command. Returns 0 if the livepatch is in force, 1 during a transition, 3 if it is
# not loaded.
status()
{
	local name names result=0
	need_livepatching
	names=$(our_names "$sysfs")
	if [ -z "$names" ]; then
		if [ "$(our_names "$modules")" ] && [ "$(other_names)" ]; then
			say "replaced by $(other_names | paste -sd ' ')"
		else
			say "not loaded"
		fi
		return 3
	fi
	for name in $names; do
		print_state "$name"
		print_details "$name"
		in_force "$name" || result=1
	done
	return $result
}
