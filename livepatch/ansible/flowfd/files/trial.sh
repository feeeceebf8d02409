# SPDX-License-Identifier: GPL-2.0-only
# The commands "trial" and "watched": the livepatch is loaded, and the kernel watched, in a unit
# of systemd. Joined with host.sh.
# shellcheck shell=sh disable=SC2154 # what host.sh and read_before set

# The unit outlives the connection. It ends with this boot.
trial() {
	# It has a watch of its own.
	for unit in $(watching); do
		systemctl kill "$unit"
	done
	cat > "$trial_file" <<-TEXT
		[Unit]
		Description=flowfd's livepatch, on trial in a rollout
		[Service]
		Type=notify
		NotifyAccess=all
		RemainAfterExit=yes
		ExecStart=/usr/sbin/$tool load --watch $1
		StandardOutput=truncate:$trial_log
		StandardError=inherit
		TimeoutStartSec=infinity
		TimeoutStopSec=5min
	TEXT
	systemctl daemon-reload
	systemctl start "$trial" 2> /dev/null || die "$(cat "$trial_log")"
}

# again FLAG FILE COUNT: whether this flag was set before, and there is more of what it is for. Of
# an older role, the count is not known.
again() {
	[ $((taint >> $1 & 1)) = 1 ] && [ "$(count "$2")" -gt "${3:-$(count "$2")}" ]
}

watched() {
	read_before
	now=$(systemctl show -P SubState "$trial")
	if [ "$boot" != "$(boot_id)" ]; then
		echo failed
		echo "the machine has rebooted meanwhile"
	elif [ "$now" = start ] || [ "$now" = running ]; then
		echo watched
	elif [ "$now" != exited ]; then
		echo failed
		cat "$trial_log"
	elif [ $((~taint & $(taint) & trouble)) != 0 ]; then
		# Also those from before the watch: an older livepatch was in force then.
		echo failed
		echo "the kernel has new taint flags: it was $taint, and is $(taint)"
	elif again 9 warn_count "${warnings-}" || again 7 oops_count "${oopses-}"; then
		echo failed
		# Likewise.
		echo "the kernel has warned or oopsed again: $warnings warnings and $oopses oopses" \
			"were before, $(count warn_count) and $(count oops_count) are now"
	elif [ "$($tool status > /dev/null || echo no)" ] ||
		[ "$(in_force)" != "$(module_version)" ]; then
		echo failed
		$tool status 2>&1 || true
	else
		echo well
	fi
}

stop_trial() {
	[ -e "$trial_file" ] || return 0
	systemctl stop "$trial" 2> /dev/null || true
	systemctl reset-failed "$trial" 2> /dev/null || true
	rm -f "$trial_file" "$trial_log"
	systemctl daemon-reload
}
