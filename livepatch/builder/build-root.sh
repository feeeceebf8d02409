# SPDX-License-Identifier: GPL-2.0-only
# The build root: a Debian system with the tools that build a kernel. Everything is
# built in its directory /build. Sourced by build-steps.sh.
# shellcheck shell=bash disable=SC2154

# Sets environment to a command that runs another one in an environment of its own, but for
# the proxies. Their values may have passwords, and all users can read arguments: so it
# removes the other variables, by their names.
environment_of_root()
{
	local others
	mapfile -d '' -t others < <(env -0 | sed -z 's/=.*//' | grep -zvxE 'https?_proxy')
	environment=(env "${others[@]/#/--unset=}" HOME=/root LC_ALL=C.UTF-8
		DEBIAN_FRONTEND=noninteractive
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
}

# inside ROOT COMMAND...: runs a command in the root's /build; the mounts that it needs
# are in a namespace of its own and disappear with it
inside()
{
	local environment
	environment_of_root
	unshare --mount --propagation private sh -ec '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" "$@"' sh "$1" "${environment[@]}" \
		sh -c 'cd /build && exec "$@"' sh "${@:2}"
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
	# From the mirrors that mmdebstrap has chosen. Backports have no updates of their own.
	for suite in $(echo "${2#"$first"}" | tr , ' '); do
		sed "s/$first/$suite/; /-backports-/d" "$root/etc/apt/sources.list" \
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
