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

# shellcheck source=userspace/tests/tap.sh
. userspace/tests/tap.sh

has_version()
{
	modinfo -F version "$installed"* | grep -x "$version"
}

nothing_left()
{
	! ls "$installed"* && ! ls -d "/var/lib/dkms/$name"
}

tap_ok "dkms add" dkms add .
tap_ok "dkms build" dkms build "$name/$version" -k "$kernel"
tap_ok "dkms install" dkms install "$name/$version" -k "$kernel"
tap_ok "the installed module has the version of dkms.conf" has_version
tap_ok "dkms remove" dkms remove "$name/$version" --all
tap_ok "nothing is left" nothing_left
tap_done
