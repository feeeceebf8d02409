#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# dkms.sh: from a checkout, adds the module to DKMS, builds and installs it, and
# removes it again without a trace. Runs in a root that may be changed, at the top
# of the project. Prints TAP.
# shellcheck disable=SC2317 # tap_ok calls the functions below
set -u

kernel=$(basename /lib/modules/*)
name=flowfd
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
installed=/lib/modules/$kernel/updates/dkms/$name.ko

# shellcheck source=selftests/tap.sh
. selftests/tap.sh

has_version()
{
	modinfo -F version "$installed"* | grep -x "$version"
}

# build_for KERNEL: pretends that the headers which there are were that kernel's
build_for()
{
	dkms build "$name/$version" -k "$1" \
		--kernelsourcedir "/lib/modules/$kernel/build"
}

# DKMS has an exit status of its own for that.
excluded()
{
	build_for "$1"
	[ $? = 77 ]
}

nothing_left()
{
	! ls "$installed"* && ! ls -d "/var/lib/dkms/$name"
}

tap_ok "dkms add" dkms add .
for old in 4.19.0-27-amd64 5.10.0-32-amd64 6.0.0-6-amd64; do
	tap_ok "not for $old" excluded $old
done
tap_ok "for 10.0.0-1-amd64" build_for 10.0.0-1-amd64
tap_ok "dkms build" dkms build "$name/$version" -k "$kernel"
tap_ok "dkms install" dkms install "$name/$version" -k "$kernel"
tap_ok "the installed module has the version of dkms.conf" has_version
tap_ok "dkms remove" dkms remove "$name/$version" --all
tap_ok "nothing is left" nothing_left
tap_done
