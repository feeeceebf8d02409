#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# dkms.sh: from a checkout, adds the module to DKMS, builds and installs it, and
# removes it again without a trace. Runs in a root that may be changed, at the top
# of the project. Prints TAP.
set -u
. selftests/tap.sh

kernel=$(basename /lib/modules/*)
name=flowfd
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
installed=/lib/modules/$kernel/updates/dkms/$name.ko

# build_for KERNEL: pretends that the headers which there are were that kernel's
build_for()
{
	dkms build "$name/$version" -k "$1" \
		--kernelsourcedir "/lib/modules/$kernel/build"
}

tap_ok "dkms add" dkms add .
for old in 4.19.0-27-amd64 5.10.0-32-amd64 6.0.0-6-amd64; do
	build_for $old > /dev/null 2>&1
	tap_is $? 77 "not for $old"	# a status of its own
done
tap_is "$(make -C module KDIR="/lib/modules/$kernel/build" VERSION=6 PATCHLEVEL=0 2>&1 |
	grep -o 'flowfd needs Linux 6.1')" "flowfd needs Linux 6.1" "nor by make alone, which says so"
# As docs/install.md says: an error for DKMS of Debian 12, and for no other.
mkdir /lib/modules/5.10.0-32-amd64
ln -s "/lib/modules/$kernel/build" /lib/modules/5.10.0-32-amd64/build
dkms autoinstall -k 5.10.0-32-amd64 > /dev/null 2>&1
tap_is $? "$(sed -n 's/^VERSION_ID="12".*/11/p' /etc/os-release | grep . || echo 0)" \
	"what the hook of 5.10.0-32-amd64 gets"
rm -r /lib/modules/5.10.0-32-amd64
tap_ok "for 10.0.0-1-amd64" build_for 10.0.0-1-amd64
tap_ok "dkms build" dkms build "$name/$version" -k "$kernel"
tap_ok "dkms install" dkms install "$name/$version" -k "$kernel"
tap_is "$(modinfo -F version "$installed"*)" "$version" \
	"the installed module has the version of dkms.conf"
tap_ok "dkms remove" dkms remove "$name/$version" --all
tap_is "$(ls -d "$installed"* "/var/lib/dkms/$name" 2> /dev/null)" "" "nothing is left"
tap_done
