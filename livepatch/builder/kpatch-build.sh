# SPDX-License-Identifier: GPL-2.0-only
# kpatch-build(1), the builder for kernels that have none of their own. Sourced by
# build-steps.sh. All functions run in ROOT/build.
# shellcheck shell=bash disable=SC2154

# kpatch_get_builder ROOT: without its dependencies, most of which are not needed here
kpatch_get_builder()
{
	unpack "$1" / kpatch-build
}

# Prints the vmlinux that has symbols.
kpatch_symbols()
{
	echo vmlinux
}

# kpatch-build refuses a kernel with IBT, for which objtool processes vmlinux as a whole
# and no single object. So the config is without IBT, but the compiler keeps the options
# for it and emits endbr64. check-ibt.py checks the result.
kpatch_disable_ibt()
{
	sed -i 's/^CONFIG_X86_KERNEL_IBT=y/# CONFIG_X86_KERNEL_IBT is not set/' \
		linux/.config
	sed -i 's/^ifeq (\$(CONFIG_X86_KERNEL_IBT),y)$/ifeq (y,y)/' \
		linux/arch/x86/Makefile
}

# kpatch_build ROOT VERSION PATCH...: makes $name.ko
kpatch_build()
{
	local root=$1 version=$2 object command targets=()
	shift 2
	! has_ibt || kpatch_disable_ibt
	# Only the patched objects are compiled. To find the kernel object that they
	# belong to, kpatch-build reads the commands of the archives that a full build
	# would leave.
	find linux -name .built-in.a.cmd -delete
	for object in $(patched_files "$root" "$@" | sed 's/c$/o/' | sort -u); do
		targets+=(-t "$object")
		command=linux/${object%/*}/.built-in.a.cmd
		touch "linux/${object%/*}/built-in.a"
		[ -e "$command" ] || printf 'savedcmd :=' > "$command"
		printf ' %s %s' "${object##*/}" "$object" >> "$command"
	done
	# kpatch-build is slow at each line, and vmlinux needs no symbols of modules.
	grep $'\tvmlinux\t' Module.symvers > linux/Module.symvers
	inside "$root" kpatch-build --non-replace -s linux -c linux/.config -v vmlinux \
		-a "$version" -t modules_prepare "${targets[@]}" -n "$name" -j "$(nproc)" "$@"
	inside "$root" strip --strip-debug "$name.ko"
}
