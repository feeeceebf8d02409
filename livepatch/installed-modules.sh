# SPDX-License-Identifier: GPL-2.0-only
# Where the modules for each kernel are: in a package of their own, or as built here.
# Sourced by flowfd-livepatch, which defines $state, after built-module.sh.
# shellcheck shell=bash disable=SC2154

packaged=/usr/lib/flowfd-livepatch

# module_dir KERNEL: prints the directory of its module. A package goes before what was
# built here, as it is upgraded with the system; but not if it is for another build of the
# running kernel, or only what was built here is up to date.
module_dir()
{
	local package=$packaged/$1 built=$state/$1 dir dirs
	dirs=("$package" "$built")
	! is_current "$built" || is_current "$package" || dirs=("$built" "$package")
	for dir in "${dirs[@]}"; do
		if [ -e "$dir/$file" ] && may_run "$dir"; then
			echo "$dir"
			return
		fi
	done
	if [ -e "$package/$file" ] && [ ! -e "$built/$file" ] && [ ! -e "$built/fixed" ]; then
		echo "$package"
	else
		echo "$built"
	fi
}

# may_run DIR: whether the module is for the running kernel, or a kernel of another version
may_run()
{
	[ "${1##*/}" != "$(uname -r)" ] || is_for_running "$1/$file"
}

# is_current DIR: whether there is a module that is up to date
is_current()
{
	is_complete "$1" && ! is_outdated "$(field "$1/$file" version)" "${1##*/}"
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
