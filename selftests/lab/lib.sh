# SPDX-License-Identifier: GPL-2.0-only
# The lab's library. A script of the lab begins with
#	. "${0%/*}/lib.sh"
# and is then at the top of the project. Here are the tables of kernels and systems,
# what the cache has of them, and test suites one after the other.
# shellcheck shell=bash disable=SC2034

lab=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
project=$(readlink -f "$lab/../..")
cache=${FLOWFD_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/flowfd}
cd "$project" || exit

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# Seconds by a clock that nobody sets: bash's SECONDS is the time of day.
now()
{
	local uptime
	read -r uptime _ < /proc/uptime
	echo "${uptime%.*}"
}

need_root()
{
	[ "$(id -u)" = 0 ] || die "must run as root; 'make' does that with sudo"
}

# What a repository or a release is made of is committed, and not released.
need_commit()
{
	[ ! "$(git status --porcelain)" ] ||
		die "there is what is not committed: $(git status --short)"
}

# no_tag TAG
no_tag()
{
	! git rev-parse -q --verify "refs/tags/$1" > /dev/null ||
		die "there is a tag $1 already: raise the version"
}

# ---- the cache: Debian systems ("roots"), debug kernels, and whether KVM works

# cached PATH COMMAND...: has a COMMAND make PATH.new and moves that to PATH, unless
# PATH is there. Others of its kind that were not used for a week are removed.
cached()
{
	local path=$1 name=${1##*/}
	shift
	mkdir -p "$cache"
	exec 9> "$cache/lock-${name%-*}"
	flock 9
	if [ ! -e "$path" ]; then
		# A run that was killed may have left file systems mounted there.
		awk -v below="$path.new/" 'index($2, below) == 1 { print $2 }' /proc/mounts |
			sort -r | xargs -r umount
		rm -rf --one-file-system "$path.new"
		"$@"
		mv "$path.new" "$path"
		# What is being made can have the date of a package.
		find "$cache" -maxdepth 1 -name "${name%%-*}-*" ! -name '*.new' -mtime +7 \
			-exec rm -rf --one-file-system {} +
	fi
	touch "$path"
	exec 9>&-
}

# root_path NAME: of a root of this suite with these packages. It is named after what
# it is made from, so that it is never out of date.
root_path()
{
	echo "$cache/root-$1-$(echo "$suite $packages" | cat - "$lab/root" |
		sha256sum | cut -c -12)"
}

# known_kernel NAME [TABLE]: its line in the table
known_kernel()
{
	awk -v k="$1" '$1 == k { print; found = 1 } END { exit !found }' \
		"$lab/${2-kernels}"
}

# root_packages ARCH: those of the table, which may be for some architectures only
root_packages()
{
	sed 's/#.*//' "$lab/packages" |
		awk -v a="[$1]" 'NF && (NF == 1 || index($0, a)) { print $1 }' | xargs
}

# use_arch: sets arch, of the series
use_arch()
{
	case $series in
	*-arm64*) arch=arm64 ;;
	*-s390x*) arch=s390x ;;
	*) arch=amd64 ;;
	esac
}

# use_kernel KERNEL: sets series, kind, arch, source, and root with its suite, suite_number
# and packages.
# A KERNEL is a series, or a series and a kind of debug kernel: 6.12-kasan. If there is
# only source of it, series is that of the root, and from its suite and version.
use_kernel()
{
	kernel=$1
	series=$kernel
	known_kernel "$series" > /dev/null || series=${kernel%%-*}
	kind=${kernel#"$series"}
	kind=${kind#-}
	from=
	if known_kernel "$series" sources > /dev/null; then
		[ "$kind" ] ||
			die "kernel $series is built from source, as a debug kernel: $series-kasan"
		read -r _ series from < <(known_kernel "$series" sources)
	fi
	use_arch
	read -r _ suite suite_number source packages < <(known_kernel "$series") ||
		die "unknown kernel '$kernel'; known: $(
			awk '/^[0-9]/ { printf "%s ", $1 }' "$lab/kernels")"
	if [ "$kind" ] && [ ! -e "$lab/debug/$kind.config" ]; then
		die "unknown kind of debug kernel '$kind'; known: $(
			cd "$lab/debug" && printf '%s\n' *.config |
				sed "/common/d; s/^/$series-/; s/.config//" | xargs)"
	fi
	packages="$source $packages $(root_packages $arch)"
	root=$(root_path "$series")
}

# install_here PROGRAMS PACKAGE...: installs packages on this machine, unless the PROGRAMS are
# there. One at a time: apt-get fails where another one is at work.
install_here()
(
	# shellcheck disable=SC2086 # words
	hash $1 2> /dev/null && exit
	hash apt-get 2> /dev/null ||
		die "there is no apt-get: the lab works on Debian 12; 'make all' builds here"
	mkdir -p "$cache"
	exec 8> "$cache/lock-apt"
	flock 8
	# shellcheck disable=SC2086
	hash $1 2> /dev/null && exit
	{
		apt-get -q update &&
			apt-get -q install -y --no-install-recommends "${@:2}"
	} >&2
)

# emulate: has this machine run the programs of $arch, also in a chroot
emulate()
{
	local misc=/proc/sys/fs/binfmt_misc interpreter
	case $arch in
	arm64) interpreter=qemu-aarch64 ;;
	*) interpreter=qemu-$arch ;;
	esac
	[ -e $misc/register ] || mount -t binfmt_misc binfmt_misc $misc || return
	install_here "arch-test $interpreter-static" qemu-user-static arch-test
	# It opens the interpreter now, for systems that do not have it.
	[ -e "$misc/$interpreter" ] ||
		cat "/usr/lib/binfmt.d/$interpreter.conf" > $misc/register
}

# debug_dir: where the debug kernel is; its root must be there
debug_dir()
{
	local key
	key=$({
		if [ "$from" ]; then
			echo "$from"
		else
			chroot "$root" dpkg-query -W "$source"
		fi
		cat "$lab/debug/compile" "$lab/debug/common.config" \
			"$lab/debug/$kind.config"
	} | sha256sum | cut -c -12)
	echo "$cache/debug-$kernel-$key"
}

# systems_that_are KIND...: their names
systems_that_are()
{
	awk -v kinds=" $* " '/^[0-9]/ && index(kinds, " " $2 " ") { print $1 }' \
		"$lab/systems"
}

# use_system NAME: sets series, arch, image, beside, and system with its suite and packages.
# Beside the kernel and what boots it, it has what selftests/run and the programs that
# it runs need.
use_system()
{
	read -r _ _ series suite image beside < <(
		awk -v n="$1" '$1 == n' "$lab/systems") ||
		die "unknown system '$1'; known: $(
			systems_that_are user early | xargs)"
	beside=${beside#-}
	use_arch
	packages="systemd-sysv udev kmod tiny-initramfs procps liburing2"
	[ $arch != amd64 ] || packages+=" libc6-i386"
	packages+=" ${image//,/ }"
	system=$(root_path "user-$1")
}

# use_cross SERIES: the same for the system that builds for arm64
use_cross()
{
	use_kernel "$1"
	packages="crossbuild-essential-arm64 linux-headers-amd64"
	system=$(root_path "cross-$1")
}

# use_copy NAME: use_system, or use_cross for "cross-SERIES", and sets guest: a copy of
# that system, which may be changed and goes with the script.
use_copy()
{
	local copy
	case $1 in
	cross-*) use_cross "${1#cross-}" && "$lab/root" "$1" ;;
	*) use_system "$1" && { [ $arch = amd64 ] || emulate; } && "$lab/root" "user-$1" ;;
	esac || exit
	copy=$(mktemp -d "$cache/scratch.XXXXXX") || exit
	# shellcheck disable=SC2064 # as it is now
	trap "rm -rf --one-file-system '$copy'" EXIT
	cp -a "$system" "$copy" || exit
	guest=$copy/${system##*/}
}

# in_guest COMMAND...: in that copy, with the project at /flowfd
in_guest()
{
	"$lab/enter" --guest "$guest" "$series" chroot /mnt \
		sh -c 'cd /flowfd && exec "$@"' sh "$@"
}

# borrow_debs: gives that copy what apt has downloaded for the suite before
borrow_debs()
{
	mkdir -p "$cache/debs-$suite"
	find "$cache/debs-$suite" -name '*.deb' \
		-exec cp -l -t "$guest/var/cache/apt/archives" {} +
}

# keep_debs: keeps downloads for the next time, as long as the archive has them
keep_debs()
{
	in_guest apt-get -q autoclean > /dev/null
	find "$cache/debs-$suite" -name '*.deb' -delete
	find "$guest/var/cache/apt/archives" -maxdepth 1 -name '*.deb' \
		-exec cp -l -t "$cache/debs-$suite" {} +
}

# For the kernel selftests: 'make check' runs the random tests longer.
shorter=(FLOWFD_ROUNDS=300 FLOWFD_STRESS_MS=500 FLOWFD_HAMMER_MS=500 FLOWFD_RACES=2)

# ---- stages: several test suites one after the other. Each closes with
# "N passed, N failed[, N skipped]", and so does the whole. What a stage prints is
# between "== NAME" and "== NAME: ..., N s", which 'results' looks for.

stages_begin()
{
	stages_passed=0
	stages_failed=0
	stages_skipped=0
	stages_table=()	# "NAME: N passed, ..., N s" of each
	stages_red=()	# what failed, after the names of its stage and program
}
stages_begin

# stages_counts PASSED FAILED SKIPPED: in words
stages_counts()
{
	printf '%d passed, %d failed' "$1" "$2"
	[ "${3:-0}" = 0 ] || printf ', %d skipped' "$3"
}

# stages_add NAME START PASSED FAILED [SKIPPED]: counts a stage and shows its end; fails
# if it did
stages_add()
{
	stages_passed=$((stages_passed + $3))
	stages_failed=$((stages_failed + $4))
	stages_skipped=$((stages_skipped + ${5:-0}))
	stages_table+=("$1: $(stages_counts "${@:3}"), $(($(now) - $2)) s")
	echo "== ${stages_table[-1]}"
	[ "$4" = 0 ]
}

# stage NAME COMMAND...: a suite that ends without its closing line, or fails
# without saying what failed, counts as one failure.
stage()
{
	local name=$1 found status passed failed skipped start=$(($(now) - ${stage_took:-0}))
	shift
	found=$(mktemp)
	echo "== $name"
	"$@" 2>&1 < /dev/null | "$lab/results" all "$name" 3> "$found"
	status=${PIPESTATUS[0]}
	read -r passed failed skipped < "$found"
	mapfile -s 1 -t -O ${#stages_red[@]} stages_red < "$found"
	rm "$found"
	if [ -z "$passed" ] || [ $((passed + failed)) = 0 ]; then
		echo "== $name: did not say what it tested"
		stages_red+=("$name: did not say what it tested")
		failed=1
	elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		echo "== $name: exit status $status"
		stages_red+=("$name: exit status $status")
		failed=1
	fi
	stages_add "$name" "$start" $((passed)) "$failed" $((skipped))
}

declare -A beside_pid beside_log

# beside NAME COMMAND...: begins a suite in which no test measures time, behind what runs
# beside it; 'join NAME' waits for its end, and shows what it has printed. It has a process
# group of its own, as what a shell has in the background goes on after Control-C.
beside()
{
	beside_log[$1]=$(mktemp)
	trap beside_ends EXIT
	set -m
	{
		trap - EXIT
		set +m
		renice -n 5 "$BASHPID" > /dev/null
		stages_begin
		start=$(now)
		"${@:2}" > "${beside_log[$1]}" 2>&1
		echo "$? $(($(now) - start))" > "${beside_log[$1]}.end"
	} < /dev/null &
	beside_pid[$1]=$!
	set +m
}

# Those that nobody has waited for.
beside_ends()
{
	local name
	for name in "${!beside_pid[@]}"; do
		kill -TERM -- "-${beside_pid[$name]}" 2> /dev/null
		rm -f "${beside_log[$name]}" "${beside_log[$name]}.end"
	done
}

# join NAME: a stage, with the time that it took
join()
{
	local log=${beside_log[$1]} status=1 took=0
	tail --pid="${beside_pid[$1]}" -f /dev/null
	read -r status took < "$log.end"
	stage_took=$took stage "$1" finished "$status" "$log"
	rm -f "$log" "$log.end"
	unset "beside_pid[$1]" "beside_log[$1]"
}

# finished STATUS FILE: what a command that ended has printed
finished()
{
	cat "$2"
	return "$1"
}

# check NAME COMMAND...: a command that is one test by its exit status
check()
{
	local start
	start=$(now)
	echo "== $1"
	if "${@:2}" < /dev/null; then
		stages_add "$1" "$start" 1 0
	else
		stages_red+=("$1")
		stages_add "$1" "$start" 0 1
	fi
}

# silent COMMAND...: for check; fails if the command prints anything
silent()
{
	local output
	output=$("$@" 2>&1)
	printf '%s' "${output:+$output$'\n'}"
	[ -z "$output" ]
}

# What failed, before the closing line: for readers of the end of a long output
stages_failures()
{
	[ ${#stages_red[@]} = 0 ] || printf 'failed: %s\n' "${stages_red[@]}"
}

# The closing line; the exit status says whether all is well.
stages_end()
{
	stages_counts "$stages_passed" "$stages_failed" "$stages_skipped"
	echo
	[ "$stages_failed" = 0 ] && [ "$stages_passed" != 0 ]
}
