# SPDX-License-Identifier: GPL-2.0-only
# Whether the livepatch may be loaded, and whether the kernel is well with it: the kill
# switch, a crash after the last load, and new taint flags or warnings. Sourced by
# flowfd-livepatch, which defines $state, say and die, after loaded-livepatch.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of and for the other files

cmdline=/proc/cmdline
off_file=/etc/flowfd-livepatch/off
taint_file=/proc/sys/kernel/tainted
counts=/sys/kernel
boot_id=/proc/sys/kernel/random/boot_id
# Seconds to wait for a disk, before an unload: what the kernel has trouble with may be that.
disk_patience=10

# The taint flags that are trouble, as in the kernel's documentation: a machine check, a
# bad page, an oops, a warning, a lockup. Its log is no proof: users can write what looks
# like a report, and others can make a task hang.
trouble_flags='M:4 B:5 D:7 W:9 L:14'
# A flag stays set. But the kernel counts what these are for, since 6.2 and late 6.1. It also
# counts what sets another flag or none, as reports of UBSAN: so where the flag was not set,
# only that counts.
counted_flags='D:7:oops_count W:9:warn_count'
declare -A count_before

# check_switch: exits with an error if livepatches of flowfd are switched off
check_switch()
{
	! grep -qw 'flowfd_livepatch=off' "$cmdline" ||
		die "switched off by the kernel parameter flowfd_livepatch=off"
	# Also a link to nothing.
	if [ -e "$off_file" ] || [ -L "$off_file" ]; then
		die "switched off by $off_file"
	fi
}

# Where loads of the running kernel that were not well are remembered: a line each, with
# version and boot.
failed_file()
{
	echo "$state/failed-$(uname -r)"
}

# remember VERSION BOOT: not to load this version again. It is on the disk when this
# returns: then the guard goes, and the machine may go down at any moment.
remember()
{
	echo "$1 $2" >> "$(failed_file)" && sync "$(failed_file)" "$state"
}

# last_seen BOOT: prints the time of its last line in the journal, if that was kept, in
# seconds since that boot. Unlike those of now, they do not run while the machine is
# suspended: then a boot can seem to have ended in the time to watch that has not.
last_seen()
{
	timeout $disk_patience journalctl -q -b "${1//-/}" -n 1 -o short-monotonic 2> /dev/null |
		sed -nE 's/^\[ *([0-9]+)\..*/\1/p'
}

# check_guard VERSION: exits with an error if this version has made trouble before, or the
# machine went down while it was watched. A watcher that was killed leaves its guard: that
# counts only if the machine was not seen after the time to watch.
check_guard()
{
	local guard version boot end seen failed versions=
	for guard in "$state/pending-$(uname -r)".*; do
		if ! { read -r version boot end < "$guard"; } 2> /dev/null; then
			# There is none, or its watch has ended.
			[ ! -e "$guard" ] || die "cannot read $guard"
			continue
		fi
		[ "$boot" != "$(cat "$boot_id")" ] || continue
		seen=$(last_seen "$boot") || true
		[ "${seen:-0}" -gt "$end" ] || remember "$version" "$boot" ||
			die "cannot write $(failed_file)"
		rm -f "$guard"
	done
	failed=$(failed_file)
	[ ! -e "$failed" ] || versions=$(cat "$failed" 2> /dev/null) || die "cannot read $failed"
	[[ $'\n'$versions != *$'\n'"$1 "* ]] ||
		die "version $1 was loaded and made trouble, or the machine went down" \
			"soon after: remove $failed to load it again"
}

# guard_line VERSION SECONDS: prints what a guard has in it
guard_line()
{
	echo "$1 $(cat "$boot_id") $(($(now) + $2))"
}

# set_guard VERSION SECONDS: if the machine goes down before this process ends, but within the
# time, it is taken as the fault of this version. The file is there with all of its content, or
# not, if this fails.
set_guard()
{
	local new
	guard=$state/pending-$(uname -r).$BASHPID
	new=$state/.${guard##*/}
	trap clean_up EXIT
	mkdir -p "$state" && guard_line "$@" > "$new" && sync "$new" && mv "$new" "$guard" &&
		sync "$state" && return
	rm -f "$new"
	return 1
}

# shorten_guard VERSION SECONDS: for the time from now on, in place: so it needs no room, and if
# it goes meanwhile, or this comes late, it is not made again
shorten_guard()
{
	[ ! -e "$guard" ] ||
		guard_line "$@" | dd of="$guard" conv=nocreat,notrunc,fsync status=none ||
		[ ! -e "$guard" ]
}

# keep_guard VERSION: has the guard of a load remember this version, in place of others: a
# file can be renamed on a disk that is full
keep_guard()
{
	grep -qsF "$1 " "${guard-}" && mv "$guard" "$(failed_file)" && sync "$state"
}

# clear_guards [VERSION]: what happens now is no fault of a load, or of one of this version
clear_guards()
{
	local guard guards=()
	for guard in "$state/pending-$(uname -r)".*; do
		if [ -z "${1-}" ] || grep -qsF "$1 " "$guard"; then
			guards+=("$guard")
		fi
	done
	rm -f "${guards[@]}"
}

# read_count FILE: sets count
read_count()
{
	count=0
	{ read -r count < "$counts/$1"; } 2> /dev/null || true
}

# mark: remembers how the kernel was before a load, and opens a pipe into which nobody writes,
# for pause
mark()
{
	local flag count
	read -r taint_before < "$taint_file"
	for flag in $counted_flags; do
		read_count "${flag##*:}"
		count_before[$flag]=$count
	done
	exec 9<> <(:)
}

# pause SECONDS: without a process, as where the kernel has trouble none may start
pause()
{
	read -rt "$1" -u 9 _ || true
}

# trouble: whether there are flags of trouble that are new since the mark; sets found to them.
# A kernel that does not tell is in trouble.
trouble()
{
	local now=0 flag
	found=
	{ read -r now < "$taint_file"; } 2> /dev/null || found=" unknown"
	for flag in $trouble_flags; do
		[ $(((now & ~taint_before) >> ${flag#*:} & 1)) = 0 ] || found+=" ${flag%:*}"
	done
	[ "$found" ]
}

# trouble_again: whether there is more of what flags were set for before the mark; sets found
trouble_again()
{
	local flag bit count
	found=
	for flag in $counted_flags; do
		bit=${flag#*:}
		bit=${bit%:*}
		[ $((taint_before >> bit & 1)) = 1 ] || continue
		read_count "${flag##*:}"
		[ "$count" -le "${count_before[$flag]}" ] || found+=" ${flag%%:*} again"
	done
	[ "$found" ]
}

# in_time COMMAND...: false if it fails, or has not ended in time; it then goes on without the
# lock of loads and unloads, and without the output, for whose end somebody may wait
in_time()
{
	read -rt $disk_patience _ < <(
		exec 9>&1 > /dev/null 2>&1 8>&-
		"$@" && echo >&9
	)
}

# note VERSION
note()
{
	remember "$1" "$(cat "$boot_id")" || keep_guard "$1"
}

# blame VERSION: remembers it, not to load it again
blame()
{
	in_time note "$1" || say "cannot write $(failed_file)" >&2
}

# judge VERSION: after a load, or a watch that was stopped. A load that nobody watches may be the
# way back from a newer version, on a machine that warns again and again.
judge()
{
	local found
	trouble || { [ "$watched" ] && trouble_again; } || return 0
	blame "$1"
	say "the kernel is not well, it has new taint flags:$found" >&2
}

# watch VERSION SECONDS: looks at the kernel for so long, after a mark. If it is not well,
# unloads the livepatch and exits with an error; this version is not loaded again. SIGTERM ends
# it, as a shutdown does, and so do SIGINT and SIGQUIT; that is not a kernel that is well, and
# clean_up() looks at it once more.
watch()
{
	local left=$2 found name
	tried=$1
	trap 'say "stopped before the end of the watch"; exit 143' TERM INT QUIT
	# The guard of the load was for longer. Where it has gone, a shutdown has begun, or
	# somebody has unloaded the livepatch.
	in_time shorten_guard "$1" "$2" || say "cannot write $guard" >&2
	until trouble || trouble_again; do
		if [ "$left" -le 0 ]; then
			tried=
			say "the kernel is well after $2 s"
			return
		fi
		pause 2
		left=$((left - 2))
	done
	trap '' TERM INT QUIT
	for name in $(our_names "$sysfs"); do
		blame "$(version_of "$name")"
	done
	tried=
	# No success: the version that made trouble may stay.
	trap '[ -z "$(our_names "$modules")" ] || say "stopped before it was unloaded" >&2; exit 1' \
		TERM INT QUIT
	say "the kernel is not well, it has new taint flags:$found" >&2
	# Tasks can keep an unload from coming to an end; then it is in force again.
	until (unload) || [ -z "$(our_names "$modules")" ]; do
		pause 30
	done
	exit 1
}
