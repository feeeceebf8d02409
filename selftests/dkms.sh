#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# dkms.sh: from a checkout, adds the module to DKMS, builds and installs it, and
# removes it again without a trace. Runs in a root that may be changed, at the top
# of the project. Prints TAP.
set -u

kernel=$(basename /lib/modules/*)
name=flowfd
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
installed=/lib/modules/$kernel/updates/dkms/$name.ko
n=0

ok()
{
	local what="$1"
	n=$((n + 1))
	shift
	if "$@" > /tmp/dkms.log 2>&1; then
		echo "ok $n - $what"
	else
		sed 's/^/# /' /tmp/dkms.log
		echo "not ok $n - $what"
	fi
}

has_version()
{
	modinfo -F version "$installed"* | grep -x "$version"
}

nothing_left()
{
	! ls "$installed"* && ! ls -d "/var/lib/dkms/$name"
}

echo 1..6
ok "dkms add" dkms add .
ok "dkms build" dkms build "$name/$version" -k "$kernel"
ok "dkms install" dkms install "$name/$version" -k "$kernel"
ok "the installed module has the version of dkms.conf" has_version
ok "dkms remove" dkms remove "$name/$version" --all
ok "nothing is left" nothing_left
