# SPDX-License-Identifier: GPL-2.0-only
# The build root: a Debian system with the tools that build a kernel. Everything is
# built in its directory /build. Sourced by build-steps.sh.
# shellcheck shell=bash disable=SC2154

# inside ROOT COMMAND...: runs a command in the root's /build; the mounts that it needs
# are in a namespace of its own and disappear with it
inside()
{
	unshare --mount --propagation private sh -ec '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive \
			${http_proxy+http_proxy="$http_proxy"} \
			${https_proxy+https_proxy="$https_proxy"} \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			sh -c "cd /build && exec \"\$@\"" sh "$@"' sh "$@"
}

# make_root ROOT SUITES BUILDER: from the first of the suites, which are separated by
# commas; apt knows the others too
make_root()
{
	local root=$1 first=${2%%,*} suite packages
	packages=$(awk -v builder="$3" '!/^#/ && NF && (NF == 1 || $2 == builder) {
		print $1 }' "$data/builder/build-root-packages" | paste -sd ,)
	rm -rf --one-file-system "$root"
	mmdebstrap --mode=root --variant=minbase \
		--aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" \
		"$first" "$root"
	# From the mirrors that mmdebstrap has chosen.
	for suite in $(echo "${2#"$first"}" | tr , ' '); do
		sed "s/$first/$suite/" "$root/etc/apt/sources.list" \
			> "$root/etc/apt/sources.list.d/$suite.list"
	done
	# Any user can reach these programs, and nothing here upgrades them.
	find "$root" -xdev -type f -perm /6000 -exec chmod ug-s {} +
	mkdir "$root/build"
}

# unpack ROOT DIR PACKAGE [PATTERN...]: unpacks a package, or some of its files, into
# DIR, without its dependencies. First removes what an interrupted call has left.
unpack()
{
	inside "$1" sh -ec 'dir=$1
		package=$2
		shift 2
		rm -f ./*.deb
		apt-get -q download "$package" || {
			echo "The archive does not have $package (any more)." >&2
			exit 1
		}
		dpkg-deb --fsys-tarfile ./*.deb | tar -x -C "$dir" --wildcards "$@"
		rm ./*.deb' sh "${@:2}"
}
