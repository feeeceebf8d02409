# SPDX-License-Identifier: GPL-2.0-only
# The commands "load" and "unload", and what a load is refused for. Sourced by
# flowfd-livepatch, which defines $self, $running, say, die and need_root, after
# built-module.sh and loaded-livepatch.sh.
# shellcheck shell=bash disable=SC2154

cmdline=/proc/cmdline
off_file=/etc/flowfd-livepatch/off
private=/run/flowfd-livepatch
# There if systemd runs, and its clients can wait for a unit.
systemd=/run/systemd/system
bus=/run/dbus/system_bus_socket
# Always there: the units do not know of $FLOWFD_LIVEPATCH_DIR.
crashes=/var/lib/flowfd-livepatch/crashes
boot_id=/proc/sys/kernel/random/boot_id

# in_unit COMMAND: continues in a unit of its own, where there is systemd, and without
# signals: no terminal, connection or session ends half-way what was begun. SIGTERM in a unit is
# that of a shutdown, which would wait for long; a kernel that ends needs no end of a load. The
# end of sysinit.target, as for emergency.target, must not end the unit: no default dependencies.
in_unit()
{
	trap '' HUP INT QUIT TSTP TTOU PIPE
	[ -z "${FLOWFD_LIVEPATCH_UNIT-}" ] || return 0
	trap '' TERM
	[ -d "$systemd" ] && [ -S "$bus" ] || return 0
	exec systemd-run -q --wait --pipe --collect --property=IgnoreOnIsolate=yes \
		--property=DefaultDependencies=no \
		--setenv=FLOWFD_LIVEPATCH_DIR="$state" --setenv=FLOWFD_LIVEPATCH_UNIT=1 \
		--setenv=FLOWFD_LIVEPATCH_PATIENCE="$patience" \
		--description="flowfd-livepatch $1" "$self" "$1"
}

# Waits until no other load or unload runs. The lock ends with this process. It is for root
# alone: whoever can open a file can hold its lock.
lock()
{
	install -d -m 755 "$private"
	(umask 077 && : >> "$private/lock")
	exec 8>> "$private/lock"
	flock -w $((2 * patience)) 8 || die "another load or unload is running"
}

# check_switch: exits with an error if livepatches of flowfd are switched off
check_switch()
{
	! grep -qw 'flowfd_livepatch=off' "$cmdline" ||
		die "switched off by the kernel parameter flowfd_livepatch=off"
	check_off_file
}

# Also a link to nothing.
check_off_file()
{
	{ [ ! -e "$off_file" ] && [ ! -L "$off_file" ]; } || die "switched off by $off_file"
}

# check_crashes KERNEL VERSION: exits with an error after two crashes in a row. A boot that ends
# without a shutdown, within five minutes after the load, leaves its line.
check_crashes()
{
	local boots
	boots=$(grep -s "^$2 " "$crashes-$1" | grep -vcFf "$boot_id") || true
	[ "$boots" -lt 2 ] || die "the machine went down twice in a row soon after version $2" \
		"was loaded: remove $crashes-$1 to load it again"
}

# guard VERSION: leaves that line. The unit of the guard removes it at a shutdown, and all of
# them after five minutes. Without systemd, nothing loads at boot.
guard()
{
	[ -d "$systemd" ] && systemctl -q cat flowfd-livepatch-guard > /dev/null 2>&1 || return 0
	timeout "$patience" systemctl -q restart flowfd-livepatch-guard ||
		die "flowfd-livepatch-guard.service does not start"
	{ mkdir -p "${crashes%/*}" &&
		echo "$1 $(cat "$boot_id")" >> "$crashes-$running" &&
		sync "$crashes-$running" "${crashes%/*}"; } || die "cannot write $crashes-$running"
	# A shutdown that stopped the unit before the line was there would count as a crash.
	systemctl -q is-active flowfd-livepatch-guard || {
		sed -i "/ $(cat "$boot_id")$/d" "$crashes-$running" || true
		die "not loaded: flowfd-livepatch-guard.service was stopped, as by a shutdown"
	}
}

# Removes that line: what is not loaded causes no crash.
unguard()
{
	[ ! -d "$systemd" ] ||
		timeout "$patience" systemctl -q stop flowfd-livepatch-guard 2> /dev/null || true
}

# check_others MODULE: exits with an error if another livepatch patches a function that
# this one does: its fix would no longer be in force. Those of modules only have its name.
check_others()
{
	local functions path
	functions=" $(field "$1" flowfd_functions) "
	for path in "$sysfs"/*/vmlinux/*,*; do
		path=${path#"$sysfs"/}
		[[ $path != flowfd_livepatch* ]] || continue
		path=${path%,*}
		[[ $functions != *" ${path##*/} "* ]] ||
			die "the livepatch ${path%%/*} patches ${path##*/}, too: unload that first"
	done
}

# die_waiting WHAT: of a transition that ends in neither direction
die_waiting()
{
	die "$1, and until that ends no livepatch can be loaded or unloaded." \
		"Kill what it waits for:"$'\n'"$(blockers)"
}

# insert NAME COPY
insert()
{
	wait_for is_gone "$1" || die_waiting "it is being unloaded"
	remove_module "$1"
	wait_for all_settled || die_waiting "another livepatch is in transition"
	check_others "$2"
	check_crashes "$running" "$(field "$2" version)"
	guard "$(field "$2" version)"
	warnings > "$private/warnings" || rm -f "$private/warnings"
	insmod "$2" || {
		unguard
		die "the kernel refused the module: see dmesg"
	}
}

# take_back NAME: ends a load that does not come to an end. As long as there is a
# transition, no livepatch can be loaded or unloaded.
take_back()
{
	local waits
	waits=$(blockers)
	disable "$1" 2> /dev/null || true
	wait_for is_gone "$1" || die_waiting "neither in force nor taken back"
	remove_module "$1" "taken back, but "
	unguard
	die "not in force for all tasks after $patience s, and taken back." \
		"It waited for:"$'\n'"$waits"
}

# The command. A build that is in force is replaced by the new one: at no time is none.
load()
{
	local dir new old stay=
	need_root
	need_livepatching
	in_unit load
	# Before all checks: what they find must not change while this waits.
	lock
	dir=$(module_dir "$running")
	check_switch
	# What is checked is inserted: a package or a build may replace the module at any time.
	copy=$(mktemp "$private/module.XXXXXX")
	trap 'rm -f "$copy"' EXIT
	[ ! -e "$dir/$file" ] || cp "$dir/$file" "$copy"
	check_fit "$dir" "$copy"
	check_signature "$copy" "$dir/$file"
	! is_outdated "$dir" "$running" || say "warning: $dir/$file is outdated: build again" >&2
	new=$(field "$copy" name)
	is_enabled "$new" || insert "$new" "$copy"
	wait_for in_force "$new" || take_back "$new"
	for old in $(our_names "$sysfs"); do
		[ "$old" = "$new" ] || (unload_one "$old") || stay+=" $old"
	done
	exec 8>&-
	say "in force"
	[ -z "$stay" ] || say "warning: an older build stays loaded:$stay" >&2
}

# unload_one NAME: one that was not enabled is never put back: its load has failed
unload_one()
{
	local waits
	if is_enabled "$1"; then
		if ! wait_for disable "$1" 2> /dev/null; then
			all_settled || die_waiting "another livepatch is in transition"
			# The other one may have ended just now.
			waits=$(disable "$1" 2>&1) || die "the kernel does not unload $1: ${waits##*: }"
		fi
		if ! wait_for is_gone "$1"; then
			waits=$(blockers)
			# Refused if it has ended.
			{ echo 1 > "$sysfs/$1/enabled"; } 2> /dev/null || true
			wait_for is_settled "$1" || die_waiting "neither unloaded nor in force again"
			is_gone "$1" || die "not unloaded from all tasks after $patience s, and in" \
				"force again. It waited for:"$'\n'"$waits"
		fi
	fi
	wait_for is_gone "$1" || die_waiting "not unloaded yet"
	remove_module "$1"
}

# The command.
unload()
{
	local name names failed=
	need_root
	need_livepatching
	in_unit unload
	lock
	names=$(our_names "$modules")
	[ "$names" ] || die "not loaded"
	for name in $names; do
		(unload_one "$name") || failed=1
	done
	[ -z "$failed" ] || exit 1
	unguard
	exec 8>&-
	say "unloaded"
}
