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
	mapfile -d '' -t others < <(env -0 | sed -z 's/=.*//' | grep -zvxE '(https?|no)_proxy')
	environment=(env "${others[@]/#/--unset=}" HOME=/root LC_ALL=C.UTF-8
		DEBIAN_FRONTEND=noninteractive
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
}

# Exports the proxy that apt uses for the archive, which its configuration may name, for all
# hosts or for one, or a command that finds it. mmdebstrap and the root's apt do not read that.
use_proxy_of_apt()
{
	local all='' proxy
	eval "$(apt-config shell all Acquire::http::Proxy)"
	proxy=$(/usr/lib/apt/apt-helper auto-detect-proxy "$archive" |
		sed -n "s/^Using proxy '\(.*\)' for URL .*/\1/p") || true
	proxy=${proxy:-$all}
	[ -z "$proxy" ] || export http_proxy=$proxy
	[ "$proxy" != DIRECT ] || unset http_proxy
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

archive=http://deb.debian.org/debian

# sources SUITES: prints the sources of apt for suites, which are separated by commas
sources()
{
	local suite
	for suite in ${1//,/ }; do
		echo "deb $archive $suite main"
		case $suite in
		forky | sid | *-backports) ;;
		*) printf 'deb %s main\n' "$archive $suite-updates" "$archive-security $suite-security" ;;
		esac
	done
}

# make_root ROOT SUITES BUILDER: from the first of the suites; apt knows the others too
make_root()
{
	local root=$1 first=${2%%,*} packages
	packages=$(awk -v builder="$3" '!/^#/ && NF && (NF == 1 || $2 == builder) {
		print $1 }' "$data/builder/build-root-packages" | paste -sd ,)
	sources "$first" | mmdebstrap --mode=root --variant=minbase --architectures=amd64 \
		--aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" \
		"$first" "$root" -
	sources "$2" > "$root/etc/apt/sources.list"
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
		apt-get -q download "$package"
		dpkg-deb --fsys-tarfile ./*.deb | tar -x -C "$dir" --wildcards "$@"
		rm ./*.deb' sh "${@:2}"
}
