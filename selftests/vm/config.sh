# SPDX-License-Identifier: GPL-2.0-only
# Shared by the scripts beside it: the table of kernels and where things are.
# shellcheck shell=bash disable=SC2034

vm_dir=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
project=$(readlink -f "$vm_dir/../..")

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

need_root()
{
	[ "$(id -u)" = 0 ] || die "must run as root; 'make' does that with sudo"
}

# use_kernel KERNEL: sets series, kind, suite, image, headers, source, python and
# root. A KERNEL is a series, or a series and a kind of debug kernel: 6.12-kasan.
use_kernel()
{
	kernel=$1
	series=${kernel%%-*}
	kind=${kernel#"$series"}
	kind=${kind#-}
	read -r _ suite image headers source python < <(
		awk -v k="$series" '$1 == k' "$vm_dir/kernels") ||
		die "unknown kernel '$kernel'; known: $(
			awk '/^[0-9]/ { printf "%s ", $1 }' "$vm_dir/kernels")"
	if [ "$kind" ] && [ ! -e "$vm_dir/debug/$kind.config" ]; then
		die "unknown kind of debug kernel '$kind'; known: $(
			cd "$vm_dir/debug" && printf '%s\n' *.config |
				sed "/common/d; s/^/$series-/; s/.config//" | xargs)"
	fi
	cache=${FLOWFD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/flowfd}
	# Named after what it is made from, so that it is never out of date.
	root=$cache/root-$series-$(cat "$vm_dir/packages" "$vm_dir/kernels" \
		"$vm_dir/root" | sha256sum | cut -c -12)
}

# debug_dir: where the debug kernel is; its root must be there
debug_dir()
{
	local key
	key=$({
		chroot "$root" dpkg-query -W "$source"
		cat "$vm_dir/debug/build" "$vm_dir/debug/common.config" \
			"$vm_dir/debug/$kind.config"
		[ "$kind" != livepatch ] ||
			cat "$project/livepatch/$series"/* \
				"$project"/livepatch/tests/{kernel-source,kpatch-macros.h}
	} | sha256sum | cut -c -12)
	echo "$cache/debug-$kernel-$key"
}
