# SPDX-License-Identifier: GPL-2.0-only
# The commands "source", "prepare" and "install": packages, and the way back from them. Joined
# with host.sh.
# shellcheck shell=sh disable=SC2154 # what host.sh and read_before set

# Nobody is there to be asked: what the administrator has changed in /etc stays.
apt_get() {
	apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout="$patience" \
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
	cd "$rollout/new" || exit
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
		[ "$word" != "$keyring" ] || continue
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

# prepare LOAD NAME...: LOAD is "no" if none is to be loaded
prepare() {
	load=$1
	shift
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
	[ "$load" = no ] || check_way_back
	apt-mark showauto > "$rollout/packages.auto"
	sync
	mv "$rollout/packages.new" "$rollout/packages"
	# Until the trial has ended nothing is loaded at boot, by a timer or by a package.
	disable_units
	! is_waiting || systemctl stop "$tool.timer"
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

# keep DIR: the packages in it, for the way back from the next version
keep() {
	for deb in "$rollout/$1"/*.deb; do
		[ -e "$deb" ] || continue
		name=${deb##*/}
		rm -f "$rollout/kept/${name%%_*}"_*.deb
		mv "$deb" "$rollout/kept"
	done
}

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
	[ "$keyring_version" ] || [ -z "$(installed "$keyring")" ] || apt_get remove "$keyring"
}
