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
source_file=/etc/apt/sources.list.d/flowfd.sources
keyring=flowfd-archive-keyring
sysfs=/sys/kernel/livepatch
# M, B, D, W, L: the taint flags that flowfd-livepatch takes for trouble.
trouble=$((1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))

die() {
	echo "$*" >&2
	exit 1
}

# ---- what there is

boot_id() {
	cat /proc/sys/kernel/random/boot_id
}

taint() {
	cat /proc/sys/kernel/tainted
}

# Prints the version of the livepatch that is in force.
in_force() {
	for path in "$sysfs"/flowfd_livepatch*/; do
		[ "$(cat "$path/enabled" "$path/transition" 2> /dev/null | xargs)" != "1 0" ] ||
			cat "/sys/module/$(basename "$path")/version"
	done | head -n 1
}

is_loaded() {
	for path in "$sysfs"/flowfd_livepatch*/; do
		[ ! -d "$path" ] || return 0
	done
	return 1
}

# Prints the units that load the livepatch at boot.
enabled_units() {
	for unit in "$tool.service" "$tool.timer"; do
		! systemctl -q is-enabled "$unit" 2> /dev/null || echo "$unit"
	done | xargs
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

# The version of the installed module for the running kernel.
module_version() {
	modinfo -F version "/usr/lib/flowfd-livepatch/$(uname -r)/flowfd_livepatch.ko" \
		2> /dev/null
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

# offered NAME: prints its newest version in the repository, or that apt knows
offered() {
	{
		[ ! -e "$index/packages" ] || awk -v name="$1" '
			$1 == "Package:" { found = $2 == name }
			$1 == "Version:" && found { print $2 }' "$index/packages"
		apt-cache policy "$1" | sed -n '/(none)/d; s/^  Candidate: //p'
	} | {
		newest=
		while read -r version; do
			if [ -z "$newest" ] || dpkg --compare-versions "$version" gt "$newest"; then
				newest=$version
			fi
		done
		echo "$newest"
	}
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
	elif [ "$(systemctl show -P SubState $trial)" = running ]; then
		refuse "the livepatch of another rollout is watched here: wait until that ends"
	fi
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
	uri=$3
	shift 3
	kernel=$(uname -r)
	arch=$(dpkg --print-architecture)
	module=$tool-$kernel
	refused='' files='' names='' given=' ' index=/nonexistent
	[ "$livepatch" = no ] || check_livepatch
	[ "$uri" = none ] || get_index "$uri"
	for word; do
		case $word in
		*.deb) fits "$word" || continue ;;
		*) continue ;;
		esac
		name=${word%%_*}
		version=${word#*_}
		given="$given$name "
		! is_newer "${version%_*}" "$name" || files="$files $word"
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
	[ "$uri" = none ] || grep -qsxF "URIs: $uri" "$source_file" || source=true
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
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages*
	mkdir "$rollout/new" "$rollout/old"
	cat > "$rollout/before.new" <<-TEXT
		boot='$(boot_id)'
		taint='$(taint)'
		in_force='$(in_force)'
		units='$(enabled_units)'
		active=$(truth systemctl -q is-active $tool)
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

apt_get() {
	apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
		-o Dpkg::Use-Pty=0 "$@"
}

# As docs/install.md says.
add_source() {
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

prepare() {
	[ $# = 0 ] || apt-get -q update
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
	sync
	mv "$rollout/packages.new" "$rollout/packages"
	# Until the trial has ended nothing is loaded at boot, or by a package.
	for unit in $(enabled_units); do
		systemctl -q disable "$unit"
	done
	# What the unit may still watch since the boot: the trial has a watch of its own.
	[ "$(systemctl show -P SubState $tool.service)" != running ] ||
		systemctl kill $tool.service
}

install_packages() {
	set -- "$rollout"/new/*.deb
	[ -e "$1" ] || return 0
	apt_get install "$@"
}

# The unit outlives the connection. It ends with this boot.
trial() {
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
	TEXT
	systemctl daemon-reload
	systemctl start $trial 2> /dev/null || die "$(cat "$trial_log")"
}

watched() {
	read_before
	if [ "$boot" != "$(boot_id)" ]; then
		echo failed
		echo "the machine has rebooted meanwhile"
	elif [ "$(systemctl show -P SubState $trial)" = running ]; then
		echo watched
	elif [ "$(systemctl show -P SubState $trial)" != exited ]; then
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
	rm -rf "$rollout/new" "$rollout/old" "$rollout"/packages* "$rollout/simulated"
}

end() {
	read_before
	if [ "$1" != none ]; then
		systemctl -q enable "$1"
		systemctl start "$1"
	else
		for unit in $units; do
			systemctl -q enable "$unit"
		done
	fi
	stop_trial
	# For the way back from the next version.
	for deb in "$rollout"/new/*.deb; do
		[ -e "$deb" ] || continue
		name=${deb##*/}
		rm -f "$rollout/kept/${name%%_*}"_*.deb
		mv "$deb" "$rollout/kept"
	done
	forget
}

# ---- the way back

# packages_back: removes what was new, and puts back what was replaced
packages_back() {
	# Of an installation that was interrupted.
	dpkg --configure -a || true
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
	[ $# = 0 ] || apt_get --allow-downgrades install "$@"
}

source_back() {
	if [ "$had_source" = true ]; then
		cmp -s "$rollout/old/source" "$source_file" ||
			cp "$rollout/old/source" "$source_file"
	elif [ -e "$source_file" ]; then
		rm "$source_file"
		apt-get -q update || true
	fi
	[ "$keyring_version" ] || [ -z "$(installed $keyring)" ] || apt_get remove $keyring
}

back() {
	read_before
	stop_trial
	# Packages that are removed unload it, too, but do not fail if they cannot.
	[ "$in_force" ] || ! is_loaded || $tool unload
	[ ! -e "$rollout/packages" ] || packages_back
	source_back
	[ -z "$in_force" ] || [ "$(in_force)" = "$in_force" ] || $tool load
	for unit in $units; do
		systemctl -q enable "$unit"
	done
	systemctl reset-failed $tool 2> /dev/null || true
	[ "$active" = false ] || systemctl -q is-active $tool || systemctl start $tool
	[ "$(in_force)" = "$in_force" ] || die "the livepatch in force is '$(in_force)'," \
		"and it was '$in_force'"
	forget
	rmdir "$rollout/kept" "$rollout" "$state" 2> /dev/null || true
}

# ----

command=$1
shift
case $command in
install) command=install_packages ;;
source) command=add_source ;;
esac
# What it runs must not read the rest of this script.
"$command" "$@" < /dev/null
