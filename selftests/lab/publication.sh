# SPDX-License-Identifier: GPL-2.0-only
# What is made must follow what was made, and perhaps published, before it. To be sourced.
# shellcheck shell=bash

# date_of REPOSITORY: of the newest of its suites, in seconds; 0 if there is none
date_of()
{
	local dates
	dates=$(sed -n 's/^Date: //p' "$1"/dists/*/InRelease 2> /dev/null) || true
	date -f - +%s <<< "${dates:-@0}" | sort -n | tail -n 1
}

# release_time: that of the newest entry of debian/changelog, in seconds
release_time()
{
	date +%s -d "$(sed -n '/^ -- /{s/.*>  //p;q}' debian/changelog)"
}

# later_than REPOSITORY TIME: a release of that time is. Of two, apt keeps the later one, and
# says nothing.
later_than()
{
	local before
	before=$(date_of "$1")
	[ "$2" -gt "$before" ] ||
		die "debian/changelog must have a time after that of $1, $(date -Rud "@$before")"
}
