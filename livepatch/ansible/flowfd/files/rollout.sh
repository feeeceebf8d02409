# SPDX-License-Identifier: GPL-2.0-only
# The commands "remember", "end" and "back": how a rollout begins on a host, and how it ends.
# Joined with host.sh.
# shellcheck shell=sh disable=SC2154 # what host.sh and read_before set

remember() {
	[ ! -e "$rollout/before" ] || die "there is a rollout here, or one that did not end"
	mkdir -p "$state"
	umask 077
	mkdir -p "$rollout/kept"
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages* "$rollout/names"
	mkdir "$rollout/new" "$rollout/old"
	# What cannot be found out ends this: in the text, it would be taken for nothing.
	boot=$(boot_id)
	kernel=$(uname -r)
	taint=$(taint)
	warnings=$(count warn_count)
	oopses=$(count oops_count)
	in_force=$(in_force)
	units=$(enabled_units)
	watching=$(watching)
	keyring_version=$(installed "$keyring")
	cat > "$rollout/before.new" <<-TEXT
		boot='$boot'
		kernel='$kernel'
		taint='$taint'
		warnings='$warnings'
		oopses='$oopses'
		in_force='$in_force'
		units='$units'
		active=$(truth systemctl -q is-active "$tool")
		watching='$watching'
		waiting=$(truth is_waiting)
		keyring_version='$keyring_version'
		had_source=$(truth test -e "$source_file")
	TEXT
	[ ! -e "$source_file" ] || cp "$source_file" "$rollout/old/source"
	sync
	# Not over that of another.
	ln "$rollout/before.new" "$rollout/before"
	rm "$rollout/before.new"
}

# read_before: sets what remember wrote
read_before() {
	[ -e "$rollout/before" ] || die "there is no $rollout/before"
	# shellcheck source=/dev/null
	. "$rollout/before"
}

# forget: the rollout has ended here
forget() {
	rm -f "$rollout/before"
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages* "$rollout/names" \
		"$rollout/simulated" "$rollout/said"
}

end() {
	read_before
	if [ "$1" != none ]; then
		systemctl start "$1"
		systemctl -q enable "$1"
	else
		for unit in $units; do
			systemctl -q enable "$unit"
		done
		[ "${waiting-false}" = false ] || systemctl start "$tool.timer"
	fi
	stop_trial
	keep new
	forget
}

units_back() {
	disable_units
	for unit in $units; do
		systemctl -q enable "$unit"
	done
}

# as_before: whether the same livepatch is in force, or one of two, and no other is loaded
as_before() {
	now=$(in_force)
	[ "$now" = "$(loaded)" ] || return
	case " $in_force " in
	*" $now "*) ;;
	*) return 1 ;;
	esac
}

# has_old_module: whether that of the running kernel is the one before the rollout, or none
has_old_module() {
	name=$tool-$(uname -r)
	old=$(sed -n "s/^$name \([^ ]*\) .*/\1/p" "$rollout/packages" 2> /dev/null)
	there=$(dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$name" 2> /dev/null |
		sed '/^not-installed\|^config-files/d; s/.* //')
	[ -z "$old" ] || [ -z "$there" ] || [ "$there" = "$old" ]
}

# not_back: if packages or the source cannot be put back, what is there is loaded only if it was
# before
not_back() {
	if has_old_module; then
		units_back
		as_before || [ -z "$in_force" ] || $tool load
	elif [ "$units" ]; then
		disable_units
		echo "until then, nothing loads a livepatch at boot" >&2
	fi
}

back() {
	read_before
	if [ "${kernel-$(uname -r)}" != "$(uname -r)" ]; then
		# The machine has come up with another kernel, for which that livepatch is not.
		in_force=$(in_force)
		active=false
		watching=
	fi
	stop_trial
	trap not_back EXIT
	# Packages that are removed unload it, too, but do not fail if they cannot.
	[ "$in_force" ] || [ -z "$(loaded)" ] || $tool unload
	[ ! -e "$rollout/packages" ] || packages_back
	source_back
	trap - EXIT
	# Before what may fail: it loads the livepatch at the next boot, whatever comes now.
	units_back
	systemctl reset-failed "$tool" 2> /dev/null || true
	# The end of the rollout may have started it.
	[ "$active" = true ] || ! systemctl -q is-active "$tool" || systemctl stop "$tool"
	[ "${waiting-false}" = true ] || ! is_waiting || systemctl stop "$tool.timer"
	as_before || [ -z "$in_force" ] || $tool load
	[ "$active" = false ] || systemctl -q is-active "$tool" || systemctl start "$tool"
	as_before || die "what is loaded now is '$(loaded)', of which '$(in_force)' is in force," \
		"and it was '$in_force'"
	# If the trial has ended a watch, there is a new one.
	if [ "$in_force" ] && [ "${watching-}" ] && [ -z "$(watching)" ]; then
		systemctl start "$tool-upgrade" || true
	fi
	# The end of the rollout may have kept the newer ones.
	keep old
	forget
	rmdir "$rollout/kept" "$rollout" "$state" 2> /dev/null || true
	# It may load at once.
	[ "${waiting-false}" = false ] || systemctl start "$tool.timer"
}
