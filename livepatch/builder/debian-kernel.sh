# SPDX-License-Identifier: GPL-2.0-only
# The Debian kernel that the livepatch is for, from the archive: config, source, vmlinux
# and compiler. Sourced by build-steps.sh, after build-root.sh.
# shellcheck shell=bash disable=SC2154

# kernel_package DIR VERSION SOURCE SUITES: sets package to the version of the kernel's packages:
# of the one that is installed, or else of the newest in the archive; two of them can have the
# same uname. Exits with an error unless the archive has all that a build needs of it. It is
# asked with apt's lists in DIR, before anything else is downloaded.
kernel_package()
{
	local name apt
	package=$(installed_package "$2")
	mkdir -p "$1/lists/partial"
	sources "$4" > "$1/sources.list"
	apt=(-q -o "Dir::Etc::SourceList=$1/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$1/lists" -o "Dir::Cache=$1" -o APT::Sandbox::User=root
		-o APT::Architecture=amd64 -o Acquire::Check-Valid-Until=false
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
		-o Acquire::Languages=none)
	apt-get "${apt[@]}" --error-on=any update >> "$1/log" 2>&1 || {
		tail -n 5 "$1/log" >&2
		die "the archive cannot be read"
	}
	[ "$package" ] || package=$(apt-cache "${apt[@]}" madison "linux-headers-$2" |
		awk 'NR == 1 { print $3 }')
	[ "$package" ] || die "the archive does not have kernel $2 (any more): boot a newer one"
	for name in "linux-headers-$2" "linux-source-$3" "linux-image-$2-dbg"; do
		apt-cache "${apt[@]}" madison "$name" |
			awk -v p="$package" '$3 == p { found = 1 } END { exit !found }' ||
			die "the archive does not have $name $package (any more): boot a newer kernel"
	done
}

# get_source ROOT VERSION SOURCE PACKAGE: makes config, Module.symvers, linux,
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
	# There, as it has xz.
	inside "$1" sh -c 'exec tar -xf usr/src/*.tar.xz --strip-components=1 -C linux'
	rm -rf source
	cp -al linux source
}

# get_vmlinux ROOT VERSION PACKAGE: with debug symbols
get_vmlinux()
{
	# In boot/ or in lib/modules/; the other is a link to it.
	unpack "$1" . "linux-image-$2-dbg=$3" './usr/lib/debug/*/vmlinux*'
	mv "$(find usr -type f -name 'vmlinux*')" vmlinux
	rm -r usr
}

# install_compiler ROOT: exactly the compiler that built the kernel, which the config
# names
install_compiler()
{
	local gcc version
	read -r gcc version < <(sed -nE \
		's/^CONFIG_CC_VERSION_TEXT=".*(gcc-[0-9]+) \(Debian ([^)]+)\).*/\1 \2/p' \
		config) || die "the config of the kernel names no compiler of Debian"
	inside "$1" apt-get -q install -y --no-install-recommends --allow-downgrades \
		"$gcc=$version" "cpp-${gcc#*-}=$version" "$gcc-base=$version" \
		"lib$gcc-dev=$version"
	ln -sf "/usr/bin/$gcc" "$1/usr/local/bin/gcc"
}

# get_kernel ROOT VERSION SOURCE PACKAGE BUILDER: everything of the kernel, into ROOT/build
get_kernel()
{
	local root=$1
	# An installation that was interrupted leaves packages that apt refuses to go
	# on with.
	inside "$root" dpkg --configure -a
	inside "$root" apt-get -q update
	inside "$root" apt-get -q install -y --no-install-recommends --fix-broken
	cd "$root/build" || exit
	rm -rf usr
	get_source "$root" "$2" "$3" "$4"
	install_compiler "$root"
	"${5%-build}_get_builder" "$root"
	# Last, as it is most of the downloads.
	get_vmlinux "$root" "$2" "$4"
}
