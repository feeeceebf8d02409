# SPDX-License-Identifier: GPL-2.0-only
# Shared by the scripts beside it: the table of systems, where they are, and copies.
# shellcheck shell=bash disable=SC2034

matrix_dir=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source-path=SCRIPTDIR/../vm source=selftests/vm/config.sh
. "$matrix_dir/../vm/config.sh"

# names_in FILE...: of the systems
names_in()
{
	(cd "$matrix_dir" && awk '/^[0-9]/ { print $1 }' "$@")
}

# use_system NAME: sets series, suite, image, beside and system, where it is; also
# what use_kernel sets for the series.
use_system()
{
	local name=$1
	read -r _ series suite image beside < <(
		awk -v n="$name" '$1 == n' "$matrix_dir"/{systems,early,older}) ||
		die "unknown system '$name'; known: $(
			names_in systems early older | xargs)"
	[ "$beside" != - ] || beside=
	cache=${FLOWFD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/flowfd}
	# Named after what it is made from; selftests/vm/root removes old ones.
	system=$cache/root-user-$name-$(echo "$suite $image" |
		cat - "$matrix_dir/system" | sha256sum | cut -c -12)
}

# use_copy NAME: use_system, and guest: a copy of that system, which may be changed and
# goes with the script. For scripts with stages.sh.
use_copy()
{
	use_system "$1"
	copy=$(mktemp -d "$cache/scratch.XXXXXX") || exit
	# shellcheck disable=SC2154 # of stages.sh
	trap 'rm -rf --one-file-system "$copy"; rm -f "$stages_log"' EXIT
	cp -a "$system" "$copy" || exit
	guest=$copy/${system##*/}
}

# in_guest COMMAND...: in that copy, with the project at /flowfd
in_guest()
{
	selftests/vm/enter --guest "$guest" "$series" chroot /mnt \
		sh -c 'cd /flowfd && exec "$@"' sh "$@"
}
