# SPDX-License-Identifier: GPL-2.0-only
# The patches that a kernel's source still needs. Sourced by build-steps.sh.
# shellcheck shell=bash disable=SC2154

# for_source ROOT PATCH: prints the patch with the paths of this source: from 7.2 on, what was in
# fs/userfaultfd.c is in a file of mm/ that has been there before
for_source()
{
	if [ -e "$1/build/source/fs/userfaultfd.c" ]; then
		cat "$2"
	else
		sed 's|fs/userfaultfd[.]c|mm/userfaultfd.c|' "$2"
	fi
}

# needs ROOT PATCH: whether the source has all lines that the patch names
needs()
{
	local path line file
	while IFS=: read -r path line; do
		file=$1/build/source/$path
		[ -e "$file" ] || die "$file is missing, which ${2##*/} changes:" \
			"remove ${1%/root} to start again"
		grep -qF "${line# }" "$file" || return
	done < <(for_source "$1" "$2" | sed -n 's/^Needed-by: //p')
}

# needed_patches ROOT SERIES: prints their paths, one in a line
needed_patches()
{
	local patch
	for patch in "$data/$2"/*.patch; do
		! needs "$1" "$patch" || echo "$patch"
	done
}
