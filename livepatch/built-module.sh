# SPDX-License-Identifier: GPL-2.0-only
# The module for a kernel: where it is, whether it fits that kernel, and whether it is up
# to date. Sourced by flowfd-livepatch, which defines $data, $state, $running, say and die.
# A module is in a package, or was built here.
# shellcheck shell=bash disable=SC2154

# All modules are in files of this name. The kernel calls a module by what it was built
# from, so that it can have two at once while one takes over.
file=flowfd_livepatch.ko
packaged=/usr/lib/flowfd-livepatch
lockdown=/sys/kernel/security/lockdown

# Prints the build ID of the running kernel: its note of type 3, GNU.
running_build_id()
{
	od -An -v -tx1 /sys/kernel/notes | tr -d ' \n' |
		sed -nE 's/.*040000001400000003000000474e5500([0-9a-f]{40}).*/\1/p'
}

# supported_kernel VERSION: prints source, patches, suites, builder, disk, download, minutes
supported_kernel()
{
	awk -v v="$1" '!/^#/ && v ~ $1 { split(v, n, "."); print n[1] "." n[2], $2, $3, $4, $5, $6,
		$7; exit }' "$data/builder/supported-kernels"
}

# how_to_get KERNEL: prints where a module for it comes from
how_to_get()
{
	if [ "$(supported_kernel "$1")" ]; then
		echo "run 'flowfd-livepatch build --kernel $1', or install flowfd-livepatch-$1"
	else
		echo "flowfd has no patches for this kernel, see KERNELS in flowfd-livepatch(8)"
	fi
}

# inputs PATCHES: prints a hash of what decides on the module, except for the kernel
inputs()
{
	cat "$data/$1"/*.patch "$data/builder/revision" | sha256sum | cut -c -12
}

# field MODULE NAME: prints what modinfo(8) does, which need not be installed to build
field()
{
	local values
	mapfile -d '' -t values < <(LC_ALL=C sed -nz "s/^$2=//p" "$1" 2> /dev/null)
	echo "${values[*]: -1}"
}

# is_outdated DIR KERNEL: whether its module was made from other patches than are here
is_outdated()
{
	local patches version
	read -r _ patches _ < <(supported_kernel "$2") || return 1
	version=$(field "$1/$file" version)
	[ "${version##*-}" != "$(inputs "$patches")" ]
}

# installed_package KERNEL: prints the version of its package, if it is installed; that of a
# package that was removed is still known
installed_package()
{
	dpkg-query -W -f '${db:Status-Status} ${Version}' "linux-image-$1" 2> /dev/null |
		sed '/^config-files /d; s/.* //' || true
}

# runs_as_installed: whether the next boot of this version has the kernel that runs. True
# if there is no package.
runs_as_installed()
{
	local package
	package=$(installed_package "$running")
	[ -z "$package" ] || [[ $(uname -v) = *"Debian $package "* ]]
}

# fits DIR KERNEL: whether its module is for the kernel that runs, or, of another version,
# that is installed
fits()
{
	[ -e "$1/$file" ] || return
	if [ "$2" = "$running" ]; then
		[ "$(field "$1/$file" flowfd_kernel)" = "$(running_build_id)" ]
	else
		fits_installed "$1" "$2"
	fi
}

# fits_installed DIR KERNEL: whether it is for the build that is installed, which boots next
fits_installed()
{
	local package
	package=$(installed_package "$2")
	[ -e "$1/$file" ] &&
		{ [ -z "$package" ] || [ "$(field "$1/$file" flowfd_package)" = "$package" ]; }
}

# module_dir KERNEL [CONDITION]: prints the directory of its module: that of a package, as
# it is upgraded with the system, unless only what was built here fits or is up to date
module_dir()
{
	local dir found=
	for dir in "$packaged/$1" "$state/$1"; do
		if "${2-fits}" "$dir" "$1" && { [ -z "$found" ] ||
			{ is_outdated "$found" "$1" && ! is_outdated "$dir" "$1"; }; }; then
			found=$dir
		fi
	done
	[ "$found" ] || [ -e "$dir/$file" ] || [ ! -e "$packaged/$1/$file" ] || dir=$packaged/$1
	echo "${found:-$dir}"
}

# check_fit DIR COPY: exits with an error unless COPY, of the module in DIR, is for the
# running kernel.
check_fit()
{
	local module=$1/$file built
	[ -e "$module" ] || die "there is no module for $running: $(how_to_get "$running")"
	built=$(field "$2" vermagic | cut -d ' ' -f 1)
	[ "$built" = "$running" ] ||
		die "$module is for kernel $built; this kernel is $running"
	[ "$(field "$2" flowfd_kernel)" = "$(running_build_id)" ] ||
		die "$module is for another build of $running: build again"
}

# is_signed MODULE
is_signed()
{
	[ "$(tail -c 28 "$1" | tr -d '\0')" = "~Module signature appended~" ]
}

# check_signature MODULE NAME: exits with an error if the kernel wants one that is missing
check_signature()
{
	if { grep -qsE '\[(integrity|confidentiality)\]' "$lockdown" ||
		grep -qsx Y /sys/module/module/parameters/sig_enforce; } && ! is_signed "$1"; then
		die "this kernel loads signed modules only (Secure Boot or lockdown)," \
			"and $2 is not signed: see SECURE BOOT in flowfd-livepatch(8)"
	fi
}
