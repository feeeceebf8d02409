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

# use_kernel SERIES: sets suite, image, headers, source, python and root
use_kernel()
{
	kernel=$1
	read -r _ suite image headers source python < <(
		awk -v k="$kernel" '$1 == k' "$vm_dir/kernels") ||
		die "unknown kernel '$kernel'; known: $(
			awk '/^[0-9]/ { printf "%s ", $1 }' "$vm_dir/kernels")"
	cache=${FLOWFD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/flowfd}
	# Named after what it is made from, so that it is never out of date.
	root=$cache/root-$kernel-$(cat "$vm_dir/packages" "$vm_dir/kernels" \
		"$vm_dir/root" | sha256sum | cut -c -12)
}
