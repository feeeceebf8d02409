# SPDX-License-Identifier: GPL-2.0-only
# The livepatch in the running kernel: load, unload, status. Sourced by flowfd-livepatch,
# which defines $name, say, die and need_root, after built-module.sh.
# shellcheck shell=bash disable=SC2154

sysfs=/sys/kernel/livepatch
loaded=$sysfs/$name
notes=/sys/module/$name/notes
lock_file=/run/flowfd-livepatch.lock
# Seconds that load and unload wait. The kernel signals tasks that block the transition
# every 15 seconds.
patience=60

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

# Not between the end of an unload's transition and the removal of the directory.
in_force()
{
	[ "$(cat "$loaded/enabled" "$loaded/transition" 2> /dev/null)" = $'1\n0' ]
}

is_enabled()
{
	[ "$(cat "$loaded/enabled" 2> /dev/null)" = 1 ]
}

is_gone()
{
	[ ! -d "$loaded" ]
}

# The kernel releases the module a moment after the livepatch has gone.
remove_module()
{
	rmmod "$name" 2> /dev/null
}

# is_loaded_from MODULE: whether the loaded module has the same build ID
is_loaded_from()
{
	local id
	id=$(hex "$notes/.note.gnu.build-id" 2> /dev/null) && [ "$id" ] &&
		[[ $(hex "$1") = *"$id"* ]]
}

# Waits until no other load or unload runs. The lock ends with this process.
lock()
{
	exec 8> "$lock_file"
	flock -w $((2 * patience)) 8 || die "another load or unload is running"
}

# insert MODULE
insert()
{
	local other
	check_signature "$1"
	# The module stays when another livepatch has replaced it, or after an unload
	# that timed out.
	[ ! -d "/sys/module/$name" ] || wait_for remove_module ||
		die "the module is still in use"
	for other in "$sysfs"/*; do
		[ ! -d "$other" ] || say "warning: this replaces the livepatch" \
			"${other##*/}" >&2
	done
	insmod "$1" || die "the kernel refused the module: see dmesg"
}

# load DIR: the command; DIR is the kernel's build directory.
load()
{
	local module=$1/$name.ko
	need_root
	need_livepatching
	check_fit "$1"
	lock
	if is_gone; then
		insert "$module"
	elif ! is_enabled; then
		die "it is being unloaded: see status"
	elif ! is_loaded_from "$module"; then
		die "another build of it is loaded: unload it first"
	fi
	wait_for in_force || die "loaded, but not in force for all tasks after" \
		"$patience s: 'flowfd-livepatch status' shows which; the kernel goes on"
	say "in force"
}

# The command.
unload()
{
	need_root
	need_livepatching
	lock
	[ -d "/sys/module/$name" ] || die "not loaded"
	if ! is_gone && is_enabled; then
		echo 0 > "$loaded/enabled"
	fi
	wait_for is_gone || die "not unloaded from all tasks after $patience s:" \
		"'flowfd-livepatch status' shows which; run unload again"
	wait_for remove_module || die "the module is still in use"
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

# Prints the tasks that have not reached the target state of the transition. Only root
# can read their state.
print_blockers()
{
	local task target state
	target=$(cat "$loaded/enabled")
	for task in /proc/[0-9]*/task/[0-9]*; do
		# Without a process for each: the transition may be over before the end.
		{ read -r state < "$task/patch_state"; } 2> /dev/null || continue
		[ "$state" = $((1 - target)) ] || continue
		printf '  waits for %s %s\n' "${task##*/}" "$(task_name "$task")"
	done
}

# The command. Returns 0 if the livepatch is in force, 1 during a transition, 3 if it is
# not loaded.
status()
{
	local function
	need_livepatching
	if is_gone; then
		say "not loaded"
		return 3
	fi
	if in_force; then
		say "in force"
	elif is_enabled; then
		say "coming into force"
		print_blockers
	else
		say "being unloaded"
		print_blockers
	fi
	for function in "$loaded"/*/*,*; do
		echo "  patches ${function##*/}"
	done
	in_force
}
