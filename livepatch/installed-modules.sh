# SPDX-License-Identifier: GPL-2.0-only
# Where the modules for each kernel are: in a package of their own, or as built here.
# Sourced by flowfd-livepatch, which defines $state, after built-module.sh.
# shellcheck shell=bash disable=SC2154

packaged=/usr/lib/flowfd-livepatch

# module_dir KERNEL: prints the directory of its module. A package goes before what was
# built here, as it is upgraded with the system.
module_dir()
{
	if [ -e "$packaged/$1/$file" ]; then
		echo "$packaged/$1"
	else
		echo "$state/$1"
	fi
}

# print_module DIR WHERE: prints a line of the list
print_module()
{
	local kernel=${1##*/} version note=
	version=$(field "$1/$file" version)
	[ "$version" ] || version="an old version"
	! is_outdated "$version" "$kernel" || note+=", outdated"
	[ "$kernel" != "$(uname -r)" ] || note+=", running kernel"
	[ "$1" = "$(module_dir "$kernel")" ] || note+=", not used"
	echo "$kernel  $version  $2, fixes $(field "$1/$file" flowfd_fixes)$note"
}

# The command: a line for each module, and for each kernel that needs none.
list()
{
	local dir
	for dir in "$packaged"/*/; do
		dir=${dir%/}
		[ ! -e "$dir/$file" ] || print_module "$dir" packaged
	done
	for dir in "$state"/*/; do
		dir=${dir%/}
		if [ -e "$dir/$file" ]; then
			print_module "$dir" "built here"
		elif [ -e "$dir/fixed" ]; then
			echo "${dir##*/}  already fixed in this kernel"
		fi
	done
}
