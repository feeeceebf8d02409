# SPDX-License-Identifier: GPL-2.0-only
# Whether the livepatch may be loaded, and whether the kernel is well with it: the kill
# switch, a crash after the last load, and new trouble in the kernel's log. Sourced by
# flowfd-livepatch, which defines $state, say and die, after loaded-livepatch.sh.
# shellcheck shell=bash disable=SC2154

cmdline=/proc/cmdline
off_file=/etc/flowfd-livepatch/off
taint_file=/proc/sys/kernel/tainted
boot_id=/proc/sys/kernel/random/boot_id
# What "load" writes before it loads, for "watch".
before_file=/run/flowfd-livepatch.before

# Lines of the kernel's log that it should not have.
trouble_lines='WARNING:|BUG:|Oops|INFO: task .* blocked|lockup|rcu.*(stall|starved)'
trouble_lines+='|general protection fault|Unable to handle'
# Bits of the taint flags that loading a livepatch sets: O, E, K.
own_taints=$((1 << 12 | 1 << 13 | 1 << 15))

# check_switch: exits with an error if livepatches of flowfd are switched off
check_switch()
{
	! grep -qw 'flowfd_livepatch=off' "$cmdline" ||
		die "switched off by the kernel parameter flowfd_livepatch=off"
	[ ! -e "$off_file" ] || die "switched off by $off_file"
}

# guard_file NAME: what the state directory has about loads for the running kernel.
# "pending": a load that was not yet seen to be well. "failed": one that was not.
guard_file()
{
	echo "$state/$1-$(uname -r)"
}

# check_guard VERSION: exits with an error if this version has made trouble before
check_guard()
{
	local version boot failed pending
	failed=$(guard_file failed)
	pending=$(guard_file pending)
	if read -r version boot 2> /dev/null < "$pending" &&
		[ "$boot" != "$(cat "$boot_id")" ]; then
		mv "$pending" "$failed"
	fi
	if read -r version boot 2> /dev/null < "$failed" && [ "$version" = "$1" ]; then
		die "version $1 was loaded and made trouble, or the machine went down" \
			"soon after: remove $failed to load it again"
	fi
}

# set_guard VERSION: if the machine goes down before this process ends, it is taken as the
# fault of this version
set_guard()
{
	trap clear_guard EXIT
	trap 'exit 0' TERM
	mkdir -p "$state"
	echo "$1 $(cat "$boot_id")" > "$(guard_file pending)"
	sync "$(guard_file pending)" "$state"
}

clear_guard()
{
	rm -f "$(guard_file pending)"
}

# mark: remembers how the kernel was before a load
mark()
{
	cat "$taint_file" > "$before_file"
	echo "flowfd-livepatch: loading" > /dev/kmsg
}

# Prints the kernel's log since the last mark; all of it, if the mark was overwritten.
log_since_mark()
{
	dmesg | awk '/flowfd-livepatch: loading$/ { n = 0; next }
		{ line[n++] = $0 }
		END { for (i = 0; i < n; i++) print line[i] }'
}

# Prints what is wrong since the mark, other than that there is a livepatch.
trouble()
{
	local before now
	before=$(cat "$before_file")
	now=$(cat "$taint_file")
	now=$((now & ~before & ~own_taints))
	[ $now = 0 ] || echo "the kernel has new taint flags: $now"
	log_since_mark | grep -E "$trouble_lines" | head -n 5 || true
}

# watch SECONDS: looks at the kernel for so long. If it is not well, unloads the
# livepatch and exits with an error; this version is not loaded again. SIGTERM ends it, as
# a shutdown does.
watch()
{
	local end=$((SECONDS + $1)) found
	while :; do
		found=$(trouble)
		[ -z "$found" ] || break
		if [ "$SECONDS" -ge "$end" ]; then
			say "the kernel is well after $1 s"
			return
		fi
		sleep 2
	done
	say "the kernel is not well:"$'\n'"$found" >&2
	mv "$(guard_file pending)" "$(guard_file failed)"
	unload
	exit 1
}
