# SPDX-License-Identifier: GPL-2.0-only
# klp-build, the builder in the kernel's own source. Sourced by build-steps.sh. All
# functions run in ROOT/build.
# shellcheck shell=bash disable=SC2154

# klp_get_builder ROOT: is in the kernel's source
klp_get_builder()
{
	:
}

# Prints the vmlinux that has symbols: that of the build without the patches.
klp_symbols()
{
	echo linux/klp-tmp/1-orig/vmlinux
}

# klp_make_key ROOT: the key that signs modules, as its certificate is part of vmlinux
klp_make_key()
{
	local key
	key=linux/$(sed -n 's/^CONFIG_MODULE_SIG_KEY="\(.*\)"/\1/p' config)
	if [ ! -e "$key" ]; then
		mkdir -p "${key%/*}"
		inside "$1" openssl req -new -nodes -batch -x509 -out "$key" \
			-keyout "$key" -config linux/certs/default_x509.genkey
	fi
}

# klp_build ROOT VERSION PATCH...: makes $name.ko. The module is not stripped: strip does not
# know the type of the sections with the livepatch's relocations, and breaks them.
klp_build()
{
	local root=$1 from=()
	shift 2
	klp_make_key "$root"
	# The build without the patches does not depend on them.
	[ ! -e linux/klp-tmp/1-orig/.complete ] || from=(-S 2)
	# All that is patched is in vmlinux, and modules would be most of the work.
	# Without them the last step, which makes a module, fails and is repeated below.
	# The steps before it must have finished now, not in an earlier build.
	rm -rf linux/klp-tmp/4-diff
	inside "$root" env -C linux MAKEFLAGS=obj-m= scripts/livepatch/klp-build -T --no-replace \
		"${from[@]}" -o "../$name.ko" "${@/#/../}" ||
		[ -e linux/klp-tmp/4-diff/.complete ]
	cp Module.symvers linux
	inside "$root" env -C linux scripts/livepatch/klp-build -T --no-replace -S 5 -o "../$name.ko"
}
