# SPDX-License-Identifier: GPL-2.0-only
# The livepatch in the running kernel: load, unload, status. Sourced by flowfd-livepatch,
# which defines say, die and need_root, after built-module.sh. LIVEPATCH is the name of
# one, which is that of its module.
# shellcheck shell=bash disable=SC2154

sysfs=/sys/kernel/livepatch
modules=/sys/module
# The newest module first.
module_list=/proc/modules
lock_file=/run/flowfd-livepatch.lock
cpuinfo=/proc/cpuinfo
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

# Whether no livepatch is in transition: the kernel has one transition at a time.
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
	wait_for has_no_module "$1"
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

# die_waiting LIVEPATCH WHAT: dies of a transition that ends in neither direction
die_waiting()
{
	die "$2 after 2 * $patience s: the kernel goes on, and until then no livepatch can be" \
		"loaded or unloaded. Kill what it waits for:"$'\n'"$(blockers "$1" print_blocker)"
}

# take_back LIVEPATCH: ends a load's transition that does not come to an end. As long as
# there is one, no livepatch can be loaded or unloaded.
take_back()
{
	local blockers
	blockers=$(blockers "$1" print_blocker)
	# Refused if it has gone.
	{ echo 0 > "$sysfs/$1/enabled"; } 2> /dev/null || true
	wait_for is_gone "$1" || die_waiting "$1" "neither in force nor taken back"
	remove_rest "$1" || die "taken back, but the module is still in use"
	die "not in force for all tasks after $patience s, and taken back." \
		"It waited for:"$'\n'"$blockers"
}

# put_back LIVEPATCH: the same for an unload. Returns if that ends after all.
put_back()
{
	local blockers
	blockers=$(blockers "$1" print_blocker)
	# Refused if it has ended.
	{ echo 1 > "$sysfs/$1/enabled"; } 2> /dev/null || true
	wait_for is_settled "$1" || die_waiting "$1" "neither unloaded nor in force again"
	is_gone "$1" || die "not unloaded from all tasks after $patience s, and in force again." \
		"It waited for:"$'\n'"$blockers"
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

# load DIR OVERRIDE SECONDS: the command; DIR has the module, and SECONDS is empty or says
# how long to watch the kernel. A build that is in force already is replaced by the new
# one: at no time is none in force.
load()
{
	local module=$1/$file new old version
	need_root
	need_livepatching
	if [ -e "$1/fixed" ]; then
		say "already fixed in this kernel"
		return
	fi
	check_switch
	check_fit "$1"
	version=$(field "$module" version)
	check_guard "$version"
	! is_outdated "$version" "$(uname -r)" ||
		say "warning: $module is outdated: build again" >&2
	new=$(field "$module" name)
	# /proc/cpuinfo has the flag only if the kernel uses it.
	! grep -qw ibt "$cpuinfo" || say "warning: this processor has IBT, with which" \
		"the livepatch was never tried" >&2
	lock
	# The unversioned name is of builds that replace all livepatches, and do not
	# notice when another takes over.
	is_gone flowfd_livepatch ||
		die "a livepatch of an old version is loaded: unload it first"
	[ -z "$3" ] || set_guard "$version" "$3"
	mark
	is_enabled "$new" || wait_for is_gone "$new" || die "it is being unloaded: see status"
	if is_gone "$new"; then
		insert "$new" "$module" "$2"
	elif ! is_loaded_from "$new" "$module"; then
		die "another build of it is loaded: unload it first"
	fi
	wait_for in_force "$new" || take_back "$new"
	for old in $(our_names "$sysfs"); do
		[ "$old" = "$new" ] || unload_one "$old"
	done
	say "in force"
	[ -z "$(overridden "$new")" ] ||
		say "warning: a later livepatch patches the same functions: see status" >&2
	if [ "$3" ]; then
		flock -u 8
		[ -z "${NOTIFY_SOCKET-}" ] || systemd-notify --ready
		watch "$3"
	fi
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
	wait_for is_gone "$1" || put_back "$1"
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
	clear_guards
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

# blockers LIVEPATCH COMMAND: calls the command for each task that has not reached the
# target state of the transition, with its ID, name, and stack. Only root can read their
# state.
blockers()
{
	local task target state
	target=$(cat "$sysfs/$1/enabled" 2> /dev/null) || return 0
	for task in /proc/[0-9]*/task/[0-9]*; do
		# Without a process for each: the transition may be over before the end.
		{ read -r state < "$task/patch_state"; } 2> /dev/null || continue
		[ "$state" = $((1 - target)) ] || continue
		"$2" "${task##*/}" "$(task_name "$task")" "$(task_stack "$task")"
	done
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

# state_of LIVEPATCH: prints it
state_of()
{
	if in_force "$1" && [ "$(overridden "$1")" ]; then
		echo "in force in part"
	elif in_force "$1"; then
		echo "in force"
	elif is_enabled "$1"; then
		echo "coming into force"
	else
		echo "being unloaded"
	fi
}

# version_of LIVEPATCH: prints it
version_of()
{
	cat "$modules/$1/version" 2> /dev/null || echo "an old version"
}

# print_details LIVEPATCH
print_details()
{
	local version function
	version=$(version_of "$1")
	echo "  $1, version $version"
	! is_outdated "$version" "$(uname -r)" || echo "  outdated: build again, and load"
	for function in "$sysfs/$1"/*/*,*; do
		echo "  patches ${function##*/}"
	done
	overridden "$1" | sed 's/\(.*\) \(.*\)/  \1 is that of \2, which came later/'
	[ "$(cat "$modules/$1/retire" 2> /dev/null)" != 1 ] ||
		echo "  closes take epmutex, since another livepatch has come:" \
			"unload and load"
}

# Prints which livepatches may have replaced ours, as far as the module that is left says
# so: they came later, and it noticed one, if it looks for them.
replacers()
{
	local name
	for name in $(our_names "$modules"); do
		[ "$(cat "$modules/$name/retire" 2> /dev/null || echo 1)" != 1 ] ||
			later_names "$name"
	done | sort -u
}

# The command. Returns 0 if the livepatch is in force, 1 during a transition or if it is in
# force in part, 3 if it is not loaded.
status()
{
	local name names replacers state result=0
	need_livepatching
	names=$(our_names "$sysfs")
	if [ -z "$names" ]; then
		replacers=$(replacers | paste -sd ' ')
		if [ "$replacers" ]; then
			say "replaced by $replacers"
		else
			say "not loaded"
		fi
		return 3
	fi
	for name in $names; do
		state=$(state_of "$name")
		say "$state"
		in_force "$name" || blockers "$name" print_blocker
		print_details "$name"
		[ "$state" = "in force" ] || result=1
	done
	return $result
}
