# SPDX-License-Identifier: GPL-2.0-only
# sh host.sh COMMAND ARGUMENT...: what the role does on a host; it comes by standard input,
# joined with the other files here (vars/main.yml).
# How the host was before is kept in $rollout until the rollout has ended there, so that a
# host that was lost in the middle can go back, too.
#
#   look LIVEPATCH UNIT URI {FILE | NAME}...
#                       what there is, and what is to be done, as JSON; changes nothing
#   remember            how the host is
#   source URI          adds the repository
#   prepare LOAD NAME...  what apt will change, and the packages for the way back
#   install             the packages
#   trial SECONDS       loads the livepatch, and has it watched
#   watched             prints "watched", "well", or "failed" and why
#   end UNIT            the livepatch stays, also after a boot
#   back                to how the host was
# shellcheck shell=sh disable=SC2034 # most of it is for the other files
set -eu
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

tool=flowfd-livepatch
state=/var/lib/flowfd-livepatch
rollout=$state/rollout
trial=flowfd-livepatch-trial.service
trial_file=/run/systemd/system/$trial
trial_log=/run/flowfd-livepatch-trial.log
# Not in the directory of the tool, which goes with its package.
lock=/run/flowfd-rollout/lock
# For how many seconds the locks of apt and dpkg are waited for.
patience=300
source_file=/etc/apt/sources.list.d/flowfd.sources
keyring=flowfd-archive-keyring
sysfs=/sys/kernel/livepatch
# Has warn_count and oops_count.
counts=/sys/kernel
is_locked="a command of another rollout still runs here: wait until that ends"
# M, B, D, W, L: the taint flags that flowfd-livepatch takes for trouble.
trouble=$((1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))

die() {
	echo "$*" >&2
	exit 1
}

# What runs from here on inherits the lock, so that apt keeps it if this process is killed. The
# directory is for root alone, as whoever can open a file can hold its lock.
lock() {
	install -d -m 700 "${lock%/*}"
	exec 9> "$lock"
	# "look" holds it for a moment.
	flock -w 1 9 || die "$is_locked"
}

boot_id() {
	cat /proc/sys/kernel/random/boot_id
}

taint() {
	cat /proc/sys/kernel/tainted
}

# count FILE: prints how often since the boot, or 0 where the kernel does not count
count() {
	cat "$counts/$1" 2> /dev/null || echo 0
}

# loaded [STATE]: prints the versions of the livepatches that are loaded, in this state
loaded() {
	for path in "$sysfs"/flowfd_livepatch*/; do
		[ -d "$path" ] || continue
		is=$(cat "$path/enabled" "$path/transition" 2> /dev/null | xargs)
		[ "${1:-$is}" != "$is" ] ||
			cat "/sys/module/$(basename "$path")/version" || echo unknown
	done | sort | xargs
}

# Prints the version of the livepatch that is in force. There are two if a load could not
# unload the older one.
in_force() {
	loaded "1 0"
}

# Prints the units that load the livepatch at boot.
enabled_units() {
	for unit in "$tool.service" "$tool.timer"; do
		! systemctl -q is-enabled "$unit" 2> /dev/null || echo "$unit"
	done | xargs
}

# Prints the units that watch the kernel since a load.
watching() {
	for unit in $tool.service $tool-upgrade.service; do
		[ "$(systemctl show -P SubState "$unit")" != running ] || echo "$unit"
	done | xargs
}

# Whether the timer is still to start the service in this boot.
is_waiting() {
	[ "$(systemctl show -P SubState $tool.timer)" = waiting ]
}

disable_units() {
	for unit in $(enabled_units); do
		systemctl -q disable "$unit"
	done
}

# truth COMMAND...
truth() {
	if "$@"; then
		echo true
	else
		echo false
	fi
}

# installed NAME: prints its version
installed() {
	dpkg-query -W -f '${db:Status-Status} ${Version}\n' "$1" 2> /dev/null |
		sed -n 's/^installed //p' | head -n 1
}

# is_newer VERSION NAME: than what is installed
is_newer() {
	there=$(installed "$2")
	[ -z "$there" ] || dpkg --compare-versions "$1" gt "$there"
}

# Prints the version of the module that would be loaded: one that was built here may go before that
# of the package.
module_version() {
	$tool list 2> /dev/null |
		sed -n "/, not used/d; s/^$(uname -r)  \([^ ]*-[^ ]*\)  .*/\1/p"
}

# Prints that of Debian.
suite() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}
