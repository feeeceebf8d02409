# SPDX-License-Identifier: GPL-2.0-only
# The commands "load" and "unload". Sourced by flowfd-livepatch, which defines say, die and
# need_root, after loaded-livepatch.sh; health.sh has the checks before a load and the watch
# after it.
# shellcheck shell=bash disable=SC2154

cpuinfo=/proc/cpuinfo
# For root alone: whoever can open a file can hold its lock.
private=/run/flowfd-livepatch
# There if systemd runs.
systemd=/run/systemd/system
# The version that is tried, its guard, the copy of its module, and whether it is to be watched.
tried='' guard='' copy='' watched=''

# Waits until no other load or unload runs. The lock ends with this process.
lock()
{
	install -d -m 700 "$private"
	exec 8> "$private/lock"
	flock -w $((2 * patience)) 8 || die "another load or unload is running"
}

# remove_rest LIVEPATCH: removes a module whose livepatch is gone: another has replaced it,
# or an unload has timed out.
remove_rest()
{
	wait_for has_no_module "$1"
}

# check_others MODULE: exits with an error if another livepatch patches a function that
# this one does: its fix would no longer be in force. Those of modules only have its name.
check_others()
{
	local functions other function
	functions=" $(field "$1" flowfd_functions) "
	for other in $(other_names); do
		for function in "$sysfs/$other"/vmlinux/*,*; do
			function=${function##*/}
			function=${function%,*}
			[[ $functions != *" $function "* ]] ||
				die "the livepatch $other patches $function, too:" \
					"'load --override' puts this one in its place"
		done
	done
}

# die_waiting WHAT: dies of a transition that ends in neither direction. The guard of a load
# stays, as tasks still run the new code.
die_waiting()
{
	local names name waits=
	guard=
	names=$(in_transition)
	[ "$names" ] || die "$1"
	for name in $names; do
		waits+=$'\n'$(blockers "$name" print_blocker 20)
	done
	die "$1: the kernel goes on, and until that ends no livepatch can be loaded or" \
		"unloaded. Kill what it waits for:$waits"
}

# disable LIVEPATCH: begins its unload. The kernel refuses that while another livepatch is
# in transition.
disable()
{
	! is_gone "$1" || return 0
	grep -qs 1 "$sysfs/$1/transition" || all_settled || return
	{ echo 0 > "$sysfs/$1/enabled"; } 2> /dev/null
}

# take_back LIVEPATCH: ends a load's transition that does not come to an end. As long as
# there is one, no livepatch can be loaded or unloaded. Returns if that ends after all: then
# this would be an unload.
take_back()
{
	local blockers
	blockers=$(blockers "$1" print_blocker 20)
	! in_force "$1" || return 0
	# Refused if it has gone.
	{ echo 0 > "$sysfs/$1/enabled"; } 2> /dev/null || true
	wait_for is_gone "$1" || die_waiting "neither in force nor taken back"
	remove_rest "$1" || die "taken back, but the module is still in use"
	die "not in force for all tasks after $patience s, and taken back." \
		"It waited for:"$'\n'"$blockers"
}

# withdraw LIVEPATCH OLDER: ends a load by a signal. Without that, the livepatch would come
# into force when nobody knows any more that it was loaded. An older build whose unload has
# not ended stays.
withdraw()
{
	trap '' TERM INT HUP QUIT
	# Refused if it has ended.
	[ -z "$2" ] || [ "$2" = "$1" ] || is_enabled "$2" ||
		{ echo 1 > "$sysfs/$2/enabled"; } 2> /dev/null || true
	if is_enabled "$1"; then
		! in_force "$1" || retire "$1" || true
		wait_for disable "$1" || die_waiting "stopped, but not taken back"
	fi
	wait_for is_gone "$1" || die_waiting "stopped, but not taken back"
	remove_rest "$1" || die "stopped, but the module is still in use"
	say "stopped, and taken back"
	exit 143
}

# put_back LIVEPATCH: the same for an unload. Returns if that ends after all.
put_back()
{
	local blockers
	blockers=$(blockers "$1" print_blocker 20)
	# Refused if it has ended.
	{ echo 1 > "$sysfs/$1/enabled"; } 2> /dev/null || true
	wait_for is_settled "$1" || die_waiting "neither unloaded nor in force again"
	is_gone "$1" || die "not unloaded from all tasks after $patience s, and in force again." \
		"It waited for:"$'\n'"$blockers"
}

# copy_module DIR: copies the module in DIR, and sets copy. What is checked is inserted: a
# package or a build may replace the module at any time.
copy_module()
{
	copy=$(mktemp "$private/module.XXXXXX")
	trap clean_up EXIT
	[ ! -e "$1/$file" ] || cp "$1/$file" "$copy"
}

# Removes the files that this process has made. Before that, a load is judged, also one that has
# failed: tasks ran the new code.
clean_up()
{
	trap '' TERM INT HUP QUIT
	[ -z "${tried-}" ] || judge "$tried"
	rm -f "${copy-}" "${guard-}"
}

# insert LIVEPATCH NAME OVERRIDE VERSION: inserts the copy of the module NAME
insert()
{
	check_signature "$copy" "$2"
	remove_rest "$1" || die "the module is still in use"
	wait_for all_settled || die "another livepatch is in transition"
	# After the waits, as another one may have come meanwhile, or an administrator.
	[ "$3" ] || check_others "$copy"
	check_switch
	tried=$4
	insmod "$copy" || die "the kernel refused the module: see dmesg"
}

# start_guard: has a shutdown remove the guards, so that it is no crash, also after the end of
# this process. If one has begun, this fails, as the unit conflicts with it: then this process
# removes its guard.
start_guard()
{
	[ -d "$systemd" ] && systemctl -q cat flowfd-livepatch-guard > /dev/null 2>&1 || return 0
	timeout $((patience / 2 + 1)) systemctl -q start flowfd-livepatch-guard ||
		die "flowfd-livepatch-guard.service does not start: is the system shut down?"
}

# load OVERRIDE SECONDS: the command; SECONDS is empty or says how long to watch the
# kernel. A build that is in force already is replaced by the new one: at no time is none
# in force.
load()
{
	local dir new old='' version older outlived=()
	need_root
	need_livepatching
	# Before all checks: what they find must not change while this waits.
	lock
	dir=$(module_dir "$(uname -r)")
	if [ -e "$dir/fixed" ]; then
		say "already fixed in this kernel"
		notify
		return
	fi
	check_switch
	copy_module "$dir"
	check_fit "$dir" "$copy"
	version=$(field "$copy" version)
	check_guard "$version"
	! is_outdated "$version" "$(uname -r)" ||
		say "warning: $dir/$file is outdated: build again" >&2
	new=$(field "$copy" name)
	# /proc/cpuinfo has the flag only if the kernel uses it.
	! grep -qw ibt "$cpuinfo" || say "warning: this processor has IBT, with which" \
		"the livepatch was never tried" >&2
	# The unversioned name is of builds that replace all livepatches, and do not
	# notice when another takes over.
	is_gone flowfd_livepatch ||
		die "a livepatch of an old version is loaded: unload it first"
	# shellcheck disable=SC2034 # for judge()
	watched=$2
	if [ "$2" ]; then
		# No load takes that long, also if it has to wait at each step.
		set_guard "$version" $((20 * patience + $2)) || die "cannot write $guard"
		# Not before: a shutdown that begins meanwhile would not remove it.
		start_guard
	fi
	mark
	is_enabled "$new" || wait_for is_gone "$new" || die "it is being unloaded: see status"
	if is_gone "$new"; then
		trap 'withdraw "$new" "${old-}"' TERM INT HUP QUIT
		insert "$new" "$dir/$file" "$1" "$version"
	elif ! is_loaded_from "$new" "$copy"; then
		die "another build of it is loaded: unload it first"
	fi
	tried=$version
	wait_for in_force "$new" || take_back "$new"
	for old in $(our_names "$sysfs"); do
		[ "$old" != "$new" ] || continue
		older=$(version_of "$old")
		if (unload_one "$old"); then
			outlived+=("$older")
		else
			say "warning: $old stays loaded" >&2
		fi
	done
	say "in force"
	[ -z "$(overridden "$new")" ] ||
		say "warning: a later livepatch patches the same functions: see status" >&2
	notify
	# The livepatch stays from here on. A terminal that is lost does not end the watch.
	trap 'exit 143' TERM INT QUIT
	trap '' HUP
	# Others may load and unload. From here on, this one waits for disks.
	exec 8>&-
	# A crash is not their fault any more.
	for older in "${outlived[@]}"; do
		in_time clear_guards "$older" ||
			say "warning: a crash will be taken for the fault of version $older:" \
				"remove $state/pending-$(uname -r).*" >&2
	done
	# Otherwise, clean_up() looks at the kernel.
	[ -z "$2" ] || watch "$version" "$2"
}

# Tells systemd that the unit has started, if it is one that waits for that. Where systemd does
# not answer, the livepatch is in force all the same, and must be watched.
notify()
{
	[ -z "${NOTIFY_SOCKET-}" ] || in_time systemd-notify --ready ||
		say "warning: systemd was not told that the livepatch is in force" >&2
}

# unload_one LIVEPATCH: one that was not enabled is never put back: its load has failed, or an
# unload goes on
unload_one()
{
	if is_enabled "$1"; then
		retire "$1" || die "$1: tasks do not leave its critical sections"
		wait_for disable "$1" || die "another livepatch is in transition"
		wait_for is_gone "$1" || put_back "$1"
	fi
	wait_for is_gone "$1" || die_waiting "not unloaded yet"
	remove_rest "$1" || die "the module is still in use"
}

# The command.
unload()
{
	local name names failed=
	need_root
	need_livepatching
	lock
	names=$(our_names "$modules")
	[ "$names" ] || die "not loaded"
	for name in $names; do
		(unload_one "$name") || failed=1
	done
	[ -z "$failed" ] || exit 1
	# Not before: until then, a crash is taken as the livepatch's.
	in_time clear_guards || say "warning: a crash will be taken for its fault:" \
		"remove $state/pending-$(uname -r).*" >&2
	say "unloaded"
}
