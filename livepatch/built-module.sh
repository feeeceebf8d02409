# SPDX-License-Identifier: GPL-2.0-only
# The module that was built for a kernel: does it fit the running kernel, and is it up to
# date? Sourced by flowfd-livepatch, which defines $data, say and die. DIR is the kernel's
# build directory.
# shellcheck shell=bash disable=SC2154

# All builds are in files of this name. The module in it is called by what it was built
# from, so that the kernel can have two builds at once while one takes over.
file=flowfd_livepatch.ko

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

# supported_kernel VERSION: prints series, suites, builder, disk and minutes
supported_kernel()
{
	awk -v v="$1" '!/^#/ && v ~ $1 { print $2, $3, $4, $5, $6 }' \
		"$data/builder/supported-kernels"
}

# inputs SERIES: prints a hash of what the module depends on, except for the kernel
inputs()
{
	cat "$data"/builder/* "$data/$1"/* | sha256sum | cut -c -12
}

# current_version SERIES: prints the version that a build made now would have
current_version()
{
	echo "$(grep -v '^#' "$data/builder/version")-$(inputs "$1")"
}

# field MODULE NAME: prints what modinfo(8) does, which need not be installed to build
field()
{
	{ LC_ALL=C grep -az "^$2=" "$1" 2> /dev/null || true; } |
		tr '\0' '\n' | tail -n 1 | cut -d = -f 2-
}

# is_complete DIR: whether a module and its build ID are in DIR
is_complete()
{
	[ -s "$1/build-id" ] && [ "$(field "$1/$file" vermagic)" ]
}

# is_outdated VERSION KERNEL: whether a build of this version was made by other builders
# or from other patches than are here
is_outdated()
{
	local series
	read -r series _ < <(supported_kernel "$2") || return 1
	[ "$1" != "$(current_version "$series")" ]
}

# is_for_running MODULE: whether it is for this build of the running kernel
is_for_running()
{
	[ "$(field "$1" flowfd_kernel)" = "$(running_build_id)" ]
}

# check_fit DIR [COPY]: exits with an error unless the module in DIR, or a copy of it, is for
# the running kernel. The build ID is that in the module: another file could be of another
# module while a package is unpacked.
check_fit()
{
	local module=$1/$file copy=${2-$1/$file} version built
	version=$(uname -r)
	[ -e "$module" ] || die "there is no module for $version:" \
		"run 'flowfd-livepatch build', or install flowfd-livepatch-$version"
	is_complete "$1" || die "$module is incomplete: build again"
	built=$(field "$copy" vermagic | cut -d ' ' -f 1)
	[ "$built" = "$version" ] ||
		die "$module is for kernel $built; this kernel is $version"
	# Older builds would replace all other livepatches.
	[ "$(field "$copy" version)" ] || die "$module is of an old version: build again"
	is_for_running "$copy" || die "$module is for another build of $version" \
		"(build id $(field "$copy" flowfd_kernel); this kernel's is" \
		"$(running_build_id)):" "$(remedy "$version")"
}

# remedy VERSION: what to do if the running kernel is another build of VERSION. After an
# upgrade of its package, a new build would be for the kernel that does not run yet.
remedy()
{
	if is_installed_kernel "$1"; then
		echo "build again"
	else
		echo "reboot into the installed kernel, and build again if need be"
	fi
}

# is_installed_kernel VERSION: whether the installed package of VERSION is what runs. True
# if there is no package.
is_installed_kernel()
{
	local package
	package=$(dpkg-query -W -f '${Version}' "linux-image-$1" 2> /dev/null) || return 0
	[ -z "$package" ] || [[ $(uname -v) = *"Debian $package "* ]]
}

# verify DIR: the command
verify()
{
	if [ -e "$1/fixed" ]; then
		say "already fixed in this kernel"
		return
	fi
	check_fit "$1"
	! is_outdated "$(field "$1/$file" version)" "$(uname -r)" ||
		die "$1/$file fits this kernel, but is outdated: build again"
	say "$1/$file fits this kernel"
}

# check_signature MODULE NAME: exits with an error if the kernel wants one that is missing.
check_signature()
{
	if { grep -qsE '\[(integrity|confidentiality)\]' /sys/kernel/security/lockdown ||
		grep -qsx Y /sys/module/module/parameters/sig_enforce; } &&
		! tail -c 28 "$1" | grep -q '~Module signature appended~'; then
		die "this kernel loads signed modules only (Secure Boot or lockdown)," \
			"and $2 is not signed: see SECURE BOOT in flowfd-livepatch(8)"
	fi
}
