# SPDX-License-Identifier: GPL-2.0-only
# The lab's library, which its scripts source: the tables of kernels and systems, where
# things are, copies of systems, and test suites one after the other.
# shellcheck shell=bash disable=SC2034

lab=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
vm_dir=$lab
project=$(readlink -f "$lab/../..")
cache=${FLOWFD_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/flowfd}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

need_root()
{
	[ "$(id -u)" = 0 ] || die "must run as root; 'make' does that with sudo"
}

# ---- kernels and systems

# use_kernel KERNEL: sets series, kind, suite, image, headers, source, python and
# root. A KERNEL is a series, or a series and a kind of debug kernel: 6.12-kasan.
use_kernel()
{
	kernel=$1
	series=${kernel%%-*}
	kind=${kernel#"$series"}
	kind=${kind#-}
	read -r _ suite image headers source python < <(
		awk -v k="$series" '$1 == k' "$lab/kernels") ||
		die "unknown kernel '$kernel'; known: $(
			awk '/^[0-9]/ { printf "%s ", $1 }' "$lab/kernels")"
	if [ "$kind" ] && [ ! -e "$lab/debug/$kind.config" ]; then
		die "unknown kind of debug kernel '$kind'; known: $(
			cd "$lab/debug" && printf '%s\n' *.config |
				sed "/common/d; s/^/$series-/; s/.config//" | xargs)"
	fi
	# Named after what it is made from, so that it is never out of date.
	root=$cache/root-$series-$(cat "$lab/packages" "$lab/kernels" \
		"$lab/root" | sha256sum | cut -c -12)
}

# debug_dir: where the debug kernel is; its root must be there
debug_dir()
{
	local key
	key=$({
		chroot "$root" dpkg-query -W "$source"
		cat "$lab/debug/compile" "$lab/debug/common.config" \
			"$lab/debug/$kind.config"
		[ "$kind" != livepatch ] ||
			cat "$project/livepatch/$series"/* \
				"$project"/livepatch/tests/{kernel-source,kpatch-macros.h}
	} | sha256sum | cut -c -12)
	echo "$cache/debug-$kernel-$key"
}

# systems_that_are KIND...: their names
systems_that_are()
{
	awk -v kinds=" $* " '/^[0-9]/ && index(kinds, " " $2 " ") { print $1 }' \
		"$lab/systems"
}

# use_system NAME: sets series, suite, image, beside and system, where it is.
use_system()
{
	local name=$1
	read -r _ _ series suite image beside < <(
		awk -v n="$name" '$1 == n' "$lab/systems") ||
		die "unknown system '$name'; known: $(
			systems_that_are user early older | xargs)"
	[ "$beside" != - ] || beside=
	# Named after what it is made from; 'root' removes old ones.
	system=$cache/root-user-$name-$(echo "$suite $image" |
		cat - "$lab/system" | sha256sum | cut -c -12)
}

# use_copy NAME: use_system, and guest: a copy of that system, which may be changed and
# goes with the script.
use_copy()
{
	use_system "$1"
	copy=$(mktemp -d "$cache/scratch.XXXXXX") || exit
	trap 'rm -rf --one-file-system "$copy"' EXIT
	cp -a "$system" "$copy" || exit
	guest=$copy/${system##*/}
}

# in_guest COMMAND...: in that copy, with the project at /flowfd
in_guest()
{
	"$lab/enter" --guest "$guest" "$series" chroot /mnt \
		sh -c 'cd /flowfd && exec "$@"' sh "$@"
}

# ---- stages: several test suites one after the other. Each closes with
# "N passed, N failed[, N skipped]", and so does the whole. What a stage prints is
# between "== NAME" and "== NAME: ..., N s", which 'quiet' looks for.

stages_passed=0
stages_failed=0
stages_skipped=0

# stages_counts PASSED FAILED SKIPPED: in words
stages_counts()
{
	printf '%d passed, %d failed' "$1" "$2"
	[ "${3:-0}" = 0 ] || printf ', %d skipped' "$3"
}

# stage NAME COMMAND...: a suite that ends without its closing line, or fails
# without saying what failed, counts as one failure.
stage()
{
	local name=$1 log status passed=0 failed=0 skipped=0 start=$SECONDS
	shift
	log=$(mktemp)
	echo "== $name"
	"$@" 2>&1 < /dev/null | tee "$log"
	status=${PIPESTATUS[0]}
	read -r passed failed skipped < <(
		sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' \
			"$log" | tail -n 1)
	rm "$log"
	if [ -z "$passed" ] || [ $((passed + failed)) = 0 ]; then
		echo "== $name: did not say what it tested"
		failed=1
	elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		echo "== $name: exit status $status"
		failed=1
	fi
	stages_passed=$((stages_passed + passed))
	stages_failed=$((stages_failed + failed))
	stages_skipped=$((stages_skipped + skipped))
	echo "== $name: $(stages_counts "$passed" "$failed" "$skipped"), $((SECONDS - start)) s"
}

# check NAME COMMAND...: a command that is one test by its exit status, and returns it.
check()
{
	local name=$1 start=$SECONDS
	shift
	echo "== $name"
	if "$@" < /dev/null; then
		stages_passed=$((stages_passed + 1))
		echo "== $name: ok, $((SECONDS - start)) s"
	else
		stages_failed=$((stages_failed + 1))
		echo "== $name: FAILED, $((SECONDS - start)) s"
		return 1
	fi
}

# if_time {stage|check} NAME COMMAND...: counts one as skipped where FLOWFD_UNTIL,
# seconds since 1970, has passed.
if_time()
{
	if [ "$(date +%s)" -lt "${FLOWFD_UNTIL-9999999999}" ]; then
		"$@"
	else
		echo "== $2: skipped, out of time"
		stages_skipped=$((stages_skipped + 1))
	fi
}

# The closing line; the exit status says whether all is well.
stages_end()
{
	stages_counts "$stages_passed" "$stages_failed" "$stages_skipped"
	echo
	[ "$stages_failed" = 0 ] && [ "$stages_passed" != 0 ]
}
