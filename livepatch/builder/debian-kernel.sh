# SPDX-License-Identifier: GPL-2.0-only
# The Debian kernel that the livepatch is for, from the archive: config, source, vmlinux
# and compiler. Sourced by build-steps.sh, after build-root.sh.
# shellcheck shell=bash disable=SC2154

# kernel_package ROOT VERSION: prints the version of the kernel's packages: of those that
# are installed, or else of those in the archive. Two of them can have the same uname.
kernel_package()
{
	local package
	# dpkg-query prints nothing for a package that only others mention.
	package=$(dpkg-query -W -f '${Version}' "linux-image-$2" 2> /dev/null) ||
		package=
	[ "$package" ] || package=$(inside "$1" apt-cache madison "linux-headers-$2" |
		awk 'NR == 1 { print $3 }')
	echo "$package"
}

# get_source ROOT VERSION SERIES PACKAGE: makes config, Module.symvers, linux,
# which the builders patch, and source, which stays as it is
get_source()
{
	unpack "$1" . "linux-headers-$2=$4" './usr/src/*/.config' \
		'./usr/src/*/Module.symvers'
	unpack "$1" . "linux-source-$3=$4" './usr/src/*.tar.xz'
	mv usr/src/*/.config config
	mv usr/src/*/Module.symvers .
	rm -rf linux
	mkdir linux
	tar -xf usr/src/*.tar.xz --strip-components=1 -C linux
	rm -rf source
	cp -al linux source
}

# install_compiler ROOT: exactly the compiler that built the kernel, which the config
# names
install_compiler()
{
	local gcc version
	read -r gcc version < <(sed -nE \
		's/^CONFIG_CC_VERSION_TEXT=".*(gcc-[0-9]+) \(Debian ([^)]+)\).*/\1 \2/p' \
		config)
	inside "$1" apt-get -q install -y --no-install-recommends --allow-downgrades \
		"$gcc=$version" "cpp-${gcc#*-}=$version" "$gcc-base=$version" \
		"lib$gcc-dev=$version"
	ln -sf "/usr/bin/$gcc" "$1/usr/local/bin/gcc"
}

# get_kernel DIR VERSION SERIES BUILDER: everything of the kernel, into DIR/root/build; and
# the version of its package, into DIR/package
get_kernel()
{
	local root=$1/root version=$2 package
	# An installation that was interrupted leaves packages that apt refuses to go
	# on with.
	inside "$root" dpkg --configure -a
	inside "$root" apt-get -q update
	inside "$root" apt-get -q install -y --no-install-recommends --fix-broken
	package=$(kernel_package "$root" "$version")
	[ "$package" ] || die "the archive does not have kernel $version"
	echo "$package" > "$1/package"
	cd "$root/build" || exit
	rm -rf usr
	get_source "$root" "$version" "$3" "$package"
	"${4%-build}_get_vmlinux" "$root" "$version" "$package"
	rm -r usr
	install_compiler "$root"
}
