# SPDX-License-Identifier: GPL-2.0-only
# The patches that a kernel's source still needs. Sourced by build-steps.sh.
# shellcheck shell=bash disable=SC2154

# needs ROOT PATCH: whether the source has all lines that the patch names
needs()
{
	local path line file
	while IFS=: read -r path line; do
		file=$1/build/source/$path
		[ -e "$file" ] || die "$file is missing, which ${2##*/} changes:" \
			"remove ${1%/root} to start again"
		grep -qF "${line# }" "$file" || return
	done < <(sed -n 's/^Needed-by: //p' "$2")
}

# needed_patches ROOT SERIES: prints their paths, one in a line
needed_patches()
{
	local patch
	for patch in "$data/$2"/*.patch; do
		! needs "$1" "$patch" || echo "$patch"
	done
}
