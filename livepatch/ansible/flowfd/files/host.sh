# SPDX-License-Identifier: GPL-2.0-only
# sh host.sh COMMAND ARGUMENT...: what the role does on a host; it comes by standard input.
# How the host was before is kept in $rollout until the rollout has ended there, so that a
# host that was lost in the middle can go back, too.
#
#   look LIVEPATCH UNIT URI {FILE | NAME}...
#                       what there is, and what is to be done, as JSON; changes nothing
#   remember            how the host is
#   source URI          adds the repository
#   prepare NAME...     what apt will change, and the packages for the way back
#   install             the packages
#   trial SECONDS       loads the livepatch, and has it watched
#   watched             prints "watched", "well", or "failed" and why
#   end UNIT            the livepatch stays, also after a boot
#   back                to how the host was
# shellcheck shell=sh disable=SC2154 # what read_before sets
set -eu
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

tool=flowfd-livepatch
state=/var/lib/flowfd-livepatch
rollout=$state/rollout
trial=flowfd-livepatch-trial.service
trial_file=/run/systemd/system/$trial
trial_log=/run/flowfd-livepatch-trial.log
lock=/run/flowfd-livepatch/rollout
# For how many seconds the locks of apt and dpkg are waited for.
patience=300
source_file=/etc/apt/sources.list.d/flowfd.sources
keyring=flowfd-archive-keyring
sysfs=/sys/kernel/livepatch
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

# ---- what there is

boot_id() {
	cat /proc/sys/kernel/random/boot_id
}

taint() {
	cat /proc/sys/kernel/tainted
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

# ---- look

# fits FILE: whether it is for this architecture and this kernel
fits() {
	case $1 in
	*-dbgsym_*) return 1 ;;
	"$module"_*) ;;
	$tool-*) return 1 ;;
	esac
	case $1 in
	*_all.deb | *_"$arch".deb) ;;
	*) return 1 ;;
	esac
}

# get_index URI: sets index, a file with what the repository has. apt may not know it yet,
# and verifies what it installs from there.
get_index() {
	index=$(mktemp -d)
	trap 'rm -rf "$index"' EXIT
	suite=$(suite)
	index_uri=$1/dists/$suite/main/binary-$arch/Packages
	/usr/lib/apt/apt-helper download-file "$index_uri" "$index/packages" \
		> "$index/log" 2>&1 ||
		refuse "$index_uri cannot be read: $(tail -n 1 "$index/log")"
}

# Prints the newest of the versions in its input.
newest() {
	newest=
	while read -r line; do
		if [ -z "$newest" ] || dpkg --compare-versions "$line" gt "$newest"; then
			newest=$line
		fi
	done
	echo "$newest"
}

# offered NAME: prints its newest version in the repository, or that apt knows
offered() {
	{
		[ ! -e "$index/packages" ] || awk -v name="$1" '
			$1 == "Package:" { found = $2 == name }
			$1 == "Version:" && found { print $2 }' "$index/packages"
		apt-cache policy "$1" | sed -n '/(none)/d; s/^  Candidate: //p'
	} | newest
}

# refuse REASON...: the first counts
refuse() {
	refused=${refused:-$*}
}

# check_livepatch: whether this host may have one
check_livepatch() {
	if systemd-detect-virt -cq 2> /dev/null; then
		refuse "this is a container, whose kernel is another system's"
	elif [ ! -d "$sysfs" ]; then
		refuse "the kernel $kernel cannot be livepatched (CONFIG_LIVEPATCH)"
	elif grep -qw 'flowfd_livepatch=off' /proc/cmdline; then
		refuse "livepatches are switched off by flowfd_livepatch=off"
	elif [ -e /etc/flowfd-livepatch/off ]; then
		refuse "livepatches are switched off by /etc/flowfd-livepatch/off"
	fi
}

# check_busy: whether another rollout changes this host, or loads, watches or unloads its
# livepatch here
check_busy() {
	[ ! -e "$lock" ] || flock -n "$lock" true || refuse "$is_locked"
	case $(systemctl show -P SubState $trial) in
	start* | running | stop*)
		refuse "the livepatch of another rollout is watched here: wait until that ends"
		;;
	esac
}

# check_way_back: whether what is in force could be loaded again: it is what is installed, and has
# made no trouble
check_way_back() {
	now=$(in_force)
	case $now in
	"" | *" "*) return 0 ;;
	esac
	there=$(module_version)
	[ "$there" = "$now" ] || die "there would be no way back: version $now is in" \
		"force, and what is installed is ${there:-none}: load that first"
	! grep -qsF "$now " "$state/failed-$(uname -r)" || die "there would be no way back:" \
		"version $now is in force, and has made trouble: see $state/failed-$(uname -r)"
}

# check_change UNIT: what a stage would find only when it has begun
check_change() {
	reason=$(check_way_back 2>&1) || refuse "$reason"
	for word in $files $names; do
		case $(dpkg-query -W -f '${db:Status-Want} ' "${word%%_*}" 2> /dev/null) in
		*hold*) refuse "${word%%_*} is on hold" ;;
		esac
	done
	[ "$enable" = false ] || [ "$(systemctl show -P LoadState "$1")" != masked ] ||
		refuse "$1 is masked"
}

# look_at NAME: puts it into names if it is to be installed, or is ours and there is a newer
# one
look_at() {
	version=$(offered "$1")
	case $(installed "$1"):$1 in
	:"$module")
		[ "$version" ] || refuse "there is no package $1 for the running kernel:" \
			"make one with 'flowfd-livepatch build --kernel $kernel --package DIR'"
		;;
	:*)
		[ "$version" ] || refuse "there is no package $1"
		;;
	*:flowfd* | *:libflowfd*)
		[ "$version" ] && is_newer "$version" "$1" || return 0
		;;
	*)
		return 0
		;;
	esac
	names="$names $1"
}

# json_list WORD...
json_list() {
	separator=
	printf '['
	for word; do
		printf '%s"%s"' "$separator" "$word"
		separator=', '
	done
	printf ']'
}

# wants_load: whether the module that is installed, or will be, is not in force
wants_load() {
	case " $files $names" in
	*" $module"*) return 0 ;;
	esac
	now=$(in_force)
	[ -z "$now" ] || [ "$now" != "$(module_version)" ]
}

# wants_unit UNIT
wants_unit() {
	[ "$1" != none ] &&
		! { systemctl -q is-enabled "$1" && systemctl -q is-active "$1"; } 2> /dev/null
}

look() {
	livepatch=$1
	unit=$2
	uri=${3%/}
	shift 3
	kernel=$(uname -r)
	arch=$(dpkg --print-architecture)
	module=$tool-$kernel
	refused='' files='' names='' kept='' index=/nonexistent
	check_busy
	busy=$refused
	[ "$livepatch" = no ] || check_livepatch
	[ "$uri" = none ] || get_index "$uri"
	# From a newer module that is not loaded there would be no way back.
	[ "$livepatch" = yes ] || [ -z "$(in_force)" ] || kept=$module
	given=" $kept "
	for word; do
		case $word in
		*[!A-Za-z0-9.+~:%_-]*.deb)
			refuse "'$word' is not the name of a package file"
			continue
			;;
		*.deb) fits "$word" || continue ;;
		*) continue ;;
		esac
		name=${word%%_*}
		version=${word#*_}
		version=${version%_*}
		[ "$name" != "$kept" ] || continue
		given="$given$name "
		# A directory may still have those of earlier rollouts.
		[ "$version" = "$(printf '%s\n' "$@" |
			sed -n "s/^${name}_\(.*\)_\(all\|$arch\)\.deb$/\1/p" | newest)" ] || continue
		! is_newer "$version" "$name" || files="$files $word"
	done
	[ "$livepatch" = no ] || set -- "$@" $tool "$module"
	for word; do
		case $word in
		*.deb) continue ;;
		esac
		case $given in
		*" $word "*) ;;
		*) look_at "$word" ;;
		esac
	done
	load=false enable=false source=false
	if [ "$livepatch" != no ]; then
		load=$(truth wants_load)
		enable=$(truth wants_unit "$unit")
	fi
	[ "$uri" = none ] ||
		grep -qsxF -e "URIs: $uri" -e "URIs: $uri/" "$source_file" || source=true
	[ "$load$enable$source$files$names" = falsefalsefalse ] || check_change "$unit"
	# It goes back first, and then there is another look at what is there.
	[ ! -e "$rollout/before" ] || refused=$busy
	# All words are names, versions, or ours.
	# shellcheck disable=SC2086
	printf '{"kernel": "%s", "refused": "%s", "files": %s, "names": %s, "load": %s,
"enable": %s, "source": %s, "unfinished": %s, "in_force": "%s"}\n' \
		"$kernel" "$(printf %s "$refused" | tr -cd '[:print:]' | tr -d '"\134')" \
		"$(json_list $files)" "$(json_list $names)" "$load" "$enable" "$source" \
		"$(truth test -e "$rollout/before")" "$(in_force)"
}

# ---- the rollout

remember() {
	[ ! -e "$rollout/before" ] || die "there is a rollout here, or one that did not end"
	mkdir -p "$state"
	umask 077
	mkdir -p "$rollout/kept"
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages* "$rollout/names"
	mkdir "$rollout/new" "$rollout/old"
	cat > "$rollout/before.new" <<-TEXT
		boot='$(boot_id)'
		kernel='$(uname -r)'
		taint='$(taint)'
		in_force='$(in_force)'
		units='$(enabled_units)'
		active=$(truth systemctl -q is-active $tool)
		watching='$(watching)'
		waiting=$(truth is_waiting)
		keyring_version='$(installed $keyring)'
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

# Nobody is there to be asked: what the administrator has changed in /etc stays.
apt_get() {
	apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=$patience \
		-o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@"
}

# when_free COMMAND...: runs it as soon as no other program has the lock that it needs, for those
# that do not wait themselves. What it says is in $rollout/said.
when_free() {
	tries=$patience
	while :; do
		status=0
		"$@" > "$rollout/said" 2>&1 || status=$?
		[ "$status" != 0 ] && [ "$tries" != 0 ] &&
			grep -q 'Could not get lock\|lock was locked' "$rollout/said" || return "$status"
		sleep 1
		tries=$((tries - 1))
	done
}

# As docs/install.md says.
add_source() {
	set -- "${1%/}"
	cd "$rollout/new"
	suite=$(suite)
	/usr/lib/apt/apt-helper download-file "$1/$keyring.deb" "../$keyring.deb"
	apt_get install "../$keyring.deb"
	/usr/lib/apt/apt-helper download-file "$1/$suite.sources" ../source
	install -m 644 ../source "$source_file"
	rm ../source "../$keyring.deb"
}

# fetch NAME VERSION DIR: from the repositories; apt says why not
fetch() {
	(cd "$3" && apt-get -q download "$1=$2")
}

# known_bad: prints which version that will be installed made trouble here
known_bad() {
	for deb in "$rollout/new/$tool"-*.deb; do
		[ -e "$deb" ] || continue
		version=$(dpkg-deb -f "$deb" Description | sed -n 's/.* from \([^ ]*\),.*/\1/p')
		! grep -qsF "$version " "$state/failed-$(uname -r)" || echo "$version"
	done
}

# get_old NAME VERSION: its package, for the way back
get_old() {
	for deb in "$rollout/kept/${1}_${2}_"*.deb; do
		[ ! -e "$deb" ] || { cp "$deb" "$rollout/old" && return; }
	done
	fetch "$1" "$2" "$rollout/old" ||
		die "$1 $2 would be replaced, and there would be no way back: its package is" \
			"neither in a repository nor in $rollout/kept"
}

# check_simulated NAME...: whether apt would install all of them. It warns, but does not fail, if
# its lists could not be updated, or a newer version has a low priority.
check_simulated() {
	for word; do
		# Adding the repository has installed it.
		[ "$word" != $keyring ] || continue
		grep -q "^${word%:*}[: ]" "$rollout/packages.new" ||
			die "apt does not install $word: is it pinned, or could apt's lists not be" \
				"updated?" "$(cat "$rollout/said" "$rollout/simulated")"
	done
}

# restore_marks: packages that had come with others still go with them. To apt, a file that it is
# given is one that somebody wanted.
restore_marks() {
	cut -d ' ' -f 1 "$rollout/packages" | grep -xF -f "$rollout/packages.auto" |
		xargs -r apt-mark -qq auto
}

prepare() {
	[ $# = 0 ] || when_free apt-get -qq update || die "$(cat "$rollout/said")"
	# For install_packages: one word each.
	echo "$*" > "$rollout/names"
	(
		cd "$rollout/new"
		set -- "$@" ./*.deb
		for word; do
			shift
			[ "$word" = './*.deb' ] || set -- "$@" "$word"
		done
		[ $# = 0 ] || apt_get -s install "$@"
	) > "$rollout/simulated" 2>&1 || die "$(cat "$rollout/simulated")"
	! grep '^Remv ' "$rollout/simulated" >&2 || die "packages would be removed"
	# NAME, the old version or "-", the new one.
	sed -nE 's/^Inst ([^ ]+) \(([^ ]+) .*/\1 - \2/p
		s/^Inst ([^ ]+) \[([^]]*)\] \(([^ ]+) .*/\1 \2 \3/p' \
		"$rollout/simulated" > "$rollout/packages.new"
	check_simulated "$@"
	while read -r name old new; do
		case $name in
		flowfd* | libflowfd*)
			set -- "$rollout/new/${name}_${new}_"*.deb
			[ -e "$1" ] || fetch "$name" "$new" "$rollout/new"
			;;
		esac
		[ "$old" = - ] || get_old "$name" "$old"
	done < "$rollout/packages.new"
	bad=$(known_bad)
	[ -z "$bad" ] || die "version $bad was loaded here and made trouble, or the machine" \
		"went down soon after: remove $state/failed-$(uname -r) to load it again"
	check_way_back
	apt-mark showauto > "$rollout/packages.auto"
	sync
	mv "$rollout/packages.new" "$rollout/packages"
	# Until the trial has ended nothing is loaded at boot, by a timer or by a package.
	disable_units
	! is_waiting || systemctl stop $tool.timer
}

# Ours as files, which prepare has fetched, to be kept for the way back; others by name.
install_packages() {
	set --
	words=$(cat "$rollout/names")
	for word in $words; do
		case $word in
		flowfd* | libflowfd*) ;;
		*) set -- "$@" "$word" ;;
		esac
	done
	for deb in "$rollout"/new/*.deb; do
		[ ! -e "$deb" ] || set -- "$@" "$deb"
	done
	# What was prepared removes none.
	[ $# = 0 ] || apt_get --no-remove install "$@"
	restore_marks
}

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
	systemctl start $trial 2> /dev/null || die "$(cat "$trial_log")"
}

watched() {
	read_before
	now=$(systemctl show -P SubState $trial)
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
	systemctl stop $trial 2> /dev/null || true
	systemctl reset-failed $trial 2> /dev/null || true
	rm -f "$trial_file" "$trial_log"
	systemctl daemon-reload
}

# forget: the rollout has ended here
forget() {
	rm -f "$rollout/before"
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages* "$rollout/names" \
		"$rollout/simulated" "$rollout/said"
}

# keep DIR: the packages in it, for the way back from the next version
keep() {
	for deb in "$rollout/$1"/*.deb; do
		[ -e "$deb" ] || continue
		name=${deb##*/}
		rm -f "$rollout/kept/${name%%_*}"_*.deb
		mv "$deb" "$rollout/kept"
	done
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
		[ "${waiting-false}" = false ] || systemctl start $tool.timer
	fi
	stop_trial
	keep new
	forget
}

# ---- the way back

# needing NAME...: prints the packages that would go with those of the rollout, when apt is told
# NAME... to install, or to remove with a dash
needing() {
	apt_get -s --allow-downgrades install "$@" > "$rollout/simulated" 2>&1 ||
		die "$(cat "$rollout/simulated")"
	awk 'NR == FNR { came[$1] = $2 == "-"; next }
		$1 == "Remv" && !came[$2] { print $2 }' "$rollout/packages" "$rollout/simulated"
}

# packages_back: removes what was new, and puts back what was replaced
packages_back() {
	# Of an installation that was interrupted. What cannot be configured is put back.
	when_free dpkg --force-confold --configure -a || [ $? = 1 ] || die "$(cat "$rollout/said")"
	set --
	while read -r name old _; do
		if [ "$old" = - ]; then
			case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2> /dev/null) in
			'' | not-installed | config-files) ;;
			*) set -- "$@" "$name-" ;;
			esac
		elif [ "$(installed "$name")" != "$old" ]; then
			for deb in "$rollout/old/${name%:*}_"*.deb; do
				set -- "$@" "$deb"
			done
		fi
	done < "$rollout/packages"
	[ $# != 0 ] || return 0
	others=$(needing "$@")
	[ -z "$others" ] || die "installed since, and in need of what is to be removed:" \
		"$others: remove it, or take what it needs out of $rollout/packages"
	apt_get --allow-downgrades install "$@"
	restore_marks
}

source_back() {
	if [ "$had_source" = true ]; then
		cmp -s "$rollout/old/source" "$source_file" ||
			cp "$rollout/old/source" "$source_file"
	elif [ -e "$source_file" ]; then
		rm "$source_file"
		when_free apt-get -q update || true
	fi
	[ "$keyring_version" ] || [ -z "$(installed $keyring)" ] || apt_get remove $keyring
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

units_back() {
	disable_units
	for unit in $units; do
		systemctl -q enable "$unit"
	done
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
	systemctl reset-failed $tool 2> /dev/null || true
	# The end of the rollout may have started it.
	[ "$active" = true ] || ! systemctl -q is-active $tool || systemctl stop $tool
	[ "${waiting-false}" = true ] || ! is_waiting || systemctl stop $tool.timer
	as_before || [ -z "$in_force" ] || $tool load
	[ "$active" = false ] || systemctl -q is-active $tool || systemctl start $tool
	as_before || die "what is loaded now is '$(loaded)', of which '$(in_force)' is in force," \
		"and it was '$in_force'"
	# If the trial has ended a watch, there is a new one.
	if [ "$in_force" ] && [ "${watching-}" ] && [ -z "$(watching)" ]; then
		systemctl start $tool-upgrade || true
	fi
	# The end of the rollout may have kept the newer ones.
	keep old
	forget
	rmdir "$rollout/kept" "$rollout" "$state" 2> /dev/null || true
	# It may load at once.
	[ "${waiting-false}" = false ] || systemctl start $tool.timer
}

# ----

command=$1
shift
case $command in
look | watched) ;;
*) lock ;;
esac
case $command in
install) command=install_packages ;;
source) command=add_source ;;
esac
# What it runs must not read the rest of this script.
"$command" "$@" < /dev/null
