# SPDX-License-Identifier: GPL-2.0-only
# The module that was built for a kernel: does it fit the running kernel? Sourced by
# flowfd-livepatch, which defines $name, say and die. DIR is the kernel's build directory.
# shellcheck shell=bash disable=SC2154

# hex FILE: its bytes as hexadecimal digits
hex()
{
	od -An -v -tx1 "$1" | tr -d ' \n'
}

# Prints the build ID of the running kernel: its note of type 3, GNU.
running_build_id()
{
	hex /sys/kernel/notes |
		sed -nE 's/.*040000001400000003000000474e5500([0-9a-f]{40}).*/\1/p'
}

# is_complete DIR: whether a module and its build ID are in DIR
is_complete()
{
	[ -s "$1/build-id" ] && modinfo "$1/$name.ko" > /dev/null 2>&1
}

# check_fit DIR: exits with an error unless the module in DIR is for the running kernel.
check_fit()
{
	local module=$1/$name.ko version built running
	version=$(uname -r)
	[ -e "$module" ] || die "nothing is built for $version:" \
		"run 'flowfd-livepatch build'"
	is_complete "$1" || die "$module is incomplete: build again"
	built=$(modinfo -F vermagic "$module" | cut -d ' ' -f 1)
	[ "$built" = "$version" ] ||
		die "$module is for kernel $built; this kernel is $version"
	running=$(running_build_id)
	built=$(cat "$1/build-id")
	[ "$built" = "$running" ] ||
		die "$module is for another build of $version (build id $built;" \
			"this kernel's is $running): build again"
}

# verify DIR: the command
verify()
{
	check_fit "$1"
	say "$1/$name.ko fits this kernel"
}

# check_signature MODULE: exits with an error if the kernel wants one that is missing.
check_signature()
{
	if { grep -qsE '\[(integrity|confidentiality)\]' /sys/kernel/security/lockdown ||
		grep -qsx Y /sys/module/module/parameters/sig_enforce; } &&
		! tail -c 28 "$1" | grep -q '~Module signature appended~'; then
		die "this kernel loads signed modules only (Secure Boot or lockdown)," \
			"and $1 is not signed: see SECURE BOOT in flowfd-livepatch(8)"
	fi
}
