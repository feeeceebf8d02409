# SPDX-License-Identifier: GPL-2.0-only
# From the kernel's source and the patches to a checked module. Sourced by
# build-steps.sh. All functions run in ROOT/build; a PATCH is a file name there.
# shellcheck shell=bash disable=SC2154

# restore_source ROOT PATCH...: the builders patch in place, and one that was killed
# leaves its source patched
restore_source()
{
	local file
	for file in $(patched_files "$@"); do
		cmp -s "source/$file" "linux/$file" || cp "source/$file" "linux/$file"
	done
}

# patched_files ROOT PATCH...: prints the paths in the kernel's source
patched_files()
{
	inside "$1" lsdiff --no-filename --strip=1 "${@:2}"
}

# settings FILE: prints the options of a config, without the versions of the tools. The
# compiler's needs no comparison: it was installed from there.
settings()
{
	grep ^CONFIG_ "$1" | grep -vE '^CONFIG_(CC_VERSION_TEXT|(AS|LD|PAHOLE)_VERSION)='
}

# configure ROOT VERSION: gives the source the kernel's config and release. With another
# config, structures could have another layout.
configure()
{
	# Debian's release is not made from the version in the Makefile. The last
	# definition counts.
	grep -qxF "filechk_kernel.release = echo $2" linux/Makefile ||
		sed -i '/^include\/config\/kernel.release:/i\
filechk_kernel.release = echo '"$2"'
' linux/Makefile
	cp config linux/.config
	inside "$1" make -s -C linux olddefconfig
	diff <(settings config) <(settings linux/.config) ||
		die "the config of $2 changes in this build root"
}

# Whether the kernel has indirect branch tracking.
has_ibt()
{
	grep -qx CONFIG_X86_KERNEL_IBT=y config
}

# check_symbols ROOT MODULE VMLINUX: exits with an error if the module refers to a symbol
# whose name the kernel has twice. kpatch-build numbers these in the order of linking,
# the kernel in that of addresses, so that the two can mean different ones.
check_symbols()
{
	local referred twice names
	referred=$(inside "$1" readelf -sW "$2" |
		sed -nE 's/.* \.klp\.sym\.[^.]+\.(.*),[0-9]+$/\1/p' | sort -u)
	twice=$(inside "$1" nm "$3" | awk '{ print $3 }' | sort | uniq -d)
	names=$(comm -12 <(echo "$referred") <(echo "$twice"))
	[ -z "$names" ] || die "the livepatch refers to names that several of the" \
		"kernel's symbols have:" "$names"
}

# check_patches ROOT PATCH...: exits with an error unless each applies without fuzz.
# The builders would accept that the lines around a change differ.
check_patches()
{
	local patch
	for patch in "${@:2}"; do
		inside "$1" patch --dry-run --fuzz=0 -sfp1 -d linux < "$patch" ||
			die "$patch is not for this source"
	done
}

# fixes PATCH...: prints their names
fixes()
{
	printf '%s\n' "${@##*/}" | sed 's/[.]patch$//' | paste -sd ' '
}

# patched_functions ROOT MODULE VMLINUX: prints the module's functions that the kernel has
# once under the same name, but for those of the module's own start and end
patched_functions()
{
	local ours theirs
	ours=$(inside "$1" objdump -t "$2" | awk '$3 == "F" &&
		$4 !~ /^[.](init|exit)[.]text$|^[.]text[.]unlikely$/ { print $NF }' | sort -u) &&
		theirs=$(inside "$1" nm "$3" | awk '$2 ~ /[tT]/ { print $3 }' | sort | uniq -u) &&
		comm -12 <(echo "$ours") <(echo "$theirs") | paste -sd ' '
}

# check_source ROOT PATCH...: exits with an error unless the source without the patches
# compiles to the functions of the running kernel. With IBT, objtool processes only vmlinux as a
# whole; without it, each object, and the compiler keeps the options for it. No Rust is needed.
check_source()
{
	local names objects ibt=()
	names=$(patched_files "$@" | sed 's/c$/o/' | sort -u)
	mapfile -t objects <<< "$names"
	! has_ibt || ibt=(CONFIG_X86_KERNEL_IBT= delay-objtool=
		KCFLAGS="-fcf-protection=branch -fno-jump-tables")
	restore_source "$@"
	inside "$1" make -s -C linux CONFIG_RUST= "${ibt[@]}" "${objects[@]}"
	inside "$1" python3 check-source.py vmlinux "${objects[@]/#/linux/}" ||
		die "this is not the source of the kernel: these functions compile to other code"
}

# build_module ROOT OUT VERSION PACKAGE BUILDER OWN-VERSION PATCH...: puts the module into
# OUT. The patches are given by their paths here.
build_module()
{
	local root=$1 out=$2 version=$3 package=$4 builder=${5%-build} own=$6 module=$name.ko
	local symbols built functions build_id patch
	shift 6
	cd "$root/build" || exit
	cp "$data"/builder/*.py .
	for patch; do
		for_source "$root" "$patch" > "${patch##*/}"
	done
	set -- "${@##*/}"
	restore_source "$root" "$@"
	check_patches "$root" "$@"
	configure "$root" "$version"
	check_source "$root" "$@"
	"${builder}_build" "$root" "$version" "$@"
	symbols=$("${builder}_symbols")
	check_symbols "$root" "$module" "$symbols"
	functions=$(patched_functions "$root" "$module" "$symbols")
	! has_ibt || inside "$root" python3 check-ibt.py "$module" "$symbols"
	built=$(inside "$root" modinfo -F vermagic "$module")
	[ "${built%% *}" = "$version" ] ||
		die "the module is for kernel $built, not for $version"
	build_id=$(inside "$root" readelf -n vmlinux | sed -n 's/.*Build ID: //p' | grep .)
	inside "$root" python3 add-modinfo.py "$module" "version=$own" \
		"flowfd_fixes=$(fixes "$@")" "flowfd_kernel=$build_id" \
		"flowfd_package=$package" "flowfd_functions=$functions"
	replace_module "$out"
}

# replace_module DIR: moves the new module into DIR, where there is always one as a whole, also
# after a power failure
replace_module()
{
	cp "$name.ko" "$1/$file.new"
	sync "$1/$file.new"
	mv "$1/$file.new" "$1/$file"
}
