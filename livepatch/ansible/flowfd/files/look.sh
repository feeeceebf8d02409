# SPDX-License-Identifier: GPL-2.0-only
# The command "look": what there is on a host, and what is to be done. Joined with host.sh.
# shellcheck shell=sh disable=SC2154 # what host.sh and read_before set

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
	elif [ -e /etc/flowfd-livepatch/off ] || [ -L /etc/flowfd-livepatch/off ]; then
		refuse "livepatches are switched off by /etc/flowfd-livepatch/off"
	fi
}

# check_busy: whether another rollout changes this host, or loads, watches or unloads its
# livepatch here
check_busy() {
	[ ! -e "$lock" ] || flock -n "$lock" true || refuse "$is_locked"
	case $(systemctl show -P SubState "$trial") in
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
	[ "$load" = false ] || reason=$(check_way_back 2>&1) || refuse "$reason"
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
			"make one with 'flowfd-livepatch build --kernel $kernel --package DIR'," \
			"or set flowfd_livepatch to false if that says that it is fixed"
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
	[ "$livepatch" = no ] || set -- "$@" "$tool" "$module"
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
