#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tool.sh: the arguments of flowfd-livepatch, which kernels and modules it knows, and its
# builds, without a kernel or a build root. Prints TAP.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154,SC2317 # variables of and for the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
# shellcheck source=livepatch/tests/functions.sh
. livepatch/tests/functions.sh

# Arguments. tool ARGUMENT...: status and first line
tool()
{
	local got
	got=$("$data/flowfd-livepatch" "$@" 2>&1 < /dev/null)
	echo "$? ${got%%$'\n'*}"
}
see="see 'flowfd-livepatch --help'"
for arguments in --help "load --help" "build --kernel --help" "status -h"; do
	# shellcheck disable=SC2086 # words
	tap_is "$(tool $arguments)" "0 usage: flowfd-livepatch COMMAND" "$arguments"
done
tap_is "$(tool --version)" "0 flowfd-livepatch $(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' \
	"$top/dkms.conf")" "the version is that of everything"
mkfifo gone
exec 8<> gone
exec 9> gone 8>&-
tap_is "$("$data/flowfd-livepatch" build --sign /no/key /no/certificate 2>&9; echo $?)" 1 \
	"an error that nobody reads"
exec 9>&-
tap_is "$("$data/flowfd-livepatch" --help 2>&1 > /dev/full; echo $?)" \
	"cat: write error: No space left on device
1" "a help that nobody gets"
tap_is "$(tool)" "2 flowfd-livepatch: no command; $see" "no command"
tap_is "$(tool boom)" "2 flowfd-livepatch: no command 'boom'; $see" "a wrong command"
tap_is "$(tool load now)" "2 flowfd-livepatch: load has no argument 'now'; $see" \
	"a wrong argument is named"
tap_is "$(tool build --untested)" "2 flowfd-livepatch: build has no argument '--untested'; $see" \
	"also of build"
tap_is "$(tool build --kernel)" "2 flowfd-livepatch: --kernel needs a value; $see" "no value"
tap_is "$(tool build --package "" --keep)" "2 flowfd-livepatch: --package needs a value; $see" \
	"an empty value"
tap_is "$(tool build --kernel=)" "2 flowfd-livepatch: --kernel needs a value; $see" "likewise"
tap_is "$(tool build --sign key)" "2 flowfd-livepatch: --sign needs a key and a certificate; \
$see" "no certificate"
tap_is "$(tool build --kernel=5.10.0-1-amd64)" "1 flowfd-livepatch: there are no patches for \
kernel 5.10.0-1-amd64: see KERNELS in flowfd-livepatch(8)" "--option=value; other kernels"
tap_is "$(tool build --kernel 5.10.0-1-amd64 --sign info.c info.o)" "1 flowfd-livepatch: there \
are no patches for kernel 5.10.0-1-amd64: see KERNELS in flowfd-livepatch(8)" \
	"--sign needs no --package"
tap_is "$(tool build --sign info.c /none)" "1 flowfd-livepatch: cannot read /none" \
	"a certificate that is not there, before the build"
mkdir without-openssl
ln -s /usr/bin/* without-openssl
rm without-openssl/openssl
tap_is "$(PATH=$PWD/without-openssl tool build --sign info.c info.o)" "1 flowfd-livepatch: openssl \
is not installed: apt install openssl" "nor is openssl"
tap_is "$(tool build --kernel 5 --package /dev/null/x)" "1 mkdir: cannot create directory \
'/dev/null': Not a directory" "and a place for the package"
tap_is "$(tool status now --json)" "2 flowfd-livepatch: status has no argument 'now'; $see" \
	"the wrong argument of status"
tap_is "$(tool status --json now)" "2 flowfd-livepatch: status has no argument 'now'; $see" \
	"also after a right one"

# Debian's own names, of November 2026. series KERNEL: prints source and patches
series()
{
	supported_kernel "$1" | cut -d ' ' -f 1-3
}
while read -r kernel wanted; do
	tap_is "$(series "$kernel")" "$wanted" "$kernel"
done <<'TEXT'
6.1.0-50-amd64 6.1 6.1 trixie,bookworm
6.1.0-56-cloud-amd64 6.1 6.1 trixie,bookworm
6.12.95+deb12-amd64 6.12 6.12 trixie,bookworm,bookworm-backports
6.12.117+deb12-amd64 6.12 6.12 trixie,bookworm,bookworm-backports
6.12.90+deb12.1-cloud-amd64 6.12 6.12 trixie,bookworm,bookworm-backports
6.12.118+deb13-amd64 6.12 6.12 trixie
6.12.115+deb13.1-amd64 6.12 6.12 trixie
7.2.12+deb14-amd64 7.2 6.12 forky,sid
7.2.13+deb14-amd64 7.2 6.12 forky,sid
7.3.4+deb13-amd64 7.3 6.12 trixie,trixie-backports
7.10.1+deb14-amd64 7.10 6.12 forky,sid
6.12.115+deb13.1-rt-amd64
6.18.15+deb13-amd64
TEXT
# shellcheck source-path=SCRIPTDIR source=../builder/build-steps.sh
. "$data/builder/build-steps.sh"
tap_is "$(sources trixie,bookworm-backports)" "deb http://deb.debian.org/debian trixie main
deb http://deb.debian.org/debian trixie-updates main
deb http://deb.debian.org/debian-security trixie-security main
deb http://deb.debian.org/debian bookworm-backports main" "the sources of suites"

# What a source needs. A fix is there if the source lacks what its patch names; nothing but the
# patch itself decides on a fix that no kernel has. A file may be elsewhere in later kernels.
source="source-root/build/source"
mkdir -p $source/{fs,mm}
touch $source/mm/userfaultfd.c
echo "  mutex_lock(&epmutex);" > $source/fs/eventpoll.c
needed()
{
	needed_patches source-root "$1" | sed "s|^$data/||" | xargs
}
tap_is "$(needed 6.1)" "6.1/epoll.patch 6.1/userfaultfd.patch" "a kernel that needs both"
: > $source/fs/eventpoll.c
tap_is "$(needed 6.1)" "6.1/userfaultfd.patch" "one that has a fix"
changed()
{
	for_source source-root "$data/6.12/userfaultfd.patch" | sed -n 's/^+++ //p'
}
tap_is "$(changed; touch $source/fs/userfaultfd.c; changed)" "b/mm/userfaultfd.c
b/fs/userfaultfd.c" "a patch is for the file that the source has"
rm $source/fs/eventpoll.c
tap_is "$(needed 6.1)" "$source/fs/eventpoll.c is missing, which epoll.patch changes: remove \
source-root to start again" "a source that lacks a file"

# A known reason to end comes before most of the downloads.
mkdir -p a-root/build
tap_is "$(
	for function in get_source get_vmlinux kpatch_get_builder; do
		eval "$function() { echo $function; }"
	done
	inside()
	{
		:
	}
	touch a-root/build/config
	get_kernel "$PWD/a-root" 6.1.0-50-amd64 6.1 1 kpatch-build)" "get_source
the config of the kernel names no compiler of Debian" "a compiler that is not there"
tap_ok "a list of functions that cannot be read is an error" eval '! (
	set -o pipefail
	inside()
	{
		[ "$2" != nm ] || exit 1
	}
	patched_functions root module vmlinux)'

# A source that compiles to other code than the kernel runs, where the kernel has IBT, too.
for config in "" CONFIG_X86_KERNEL_IBT=y; do
	echo "$config" > config
	tap_is "$(
		inside()
		{
			[ "$2" != python3 ]
		}
		check_source root a.patch
		echo built)" "this is not the source of the kernel: these functions compile to other \
code" "another source is refused $config"
done
tap_is "$(
	inside()
	{
		[ "$2" = lsdiff ] && return 1
		echo "$2"
	}
	set -eo pipefail
	check_source root a.patch)" "" "without its files, nothing is compiled"

# What the version of a module depends on.
cp -r "$data" copy
(
	data=$PWD/copy
	echo "7.2.99+deb14-amd64" >> copy/builder/tested-kernels
	echo "# of another kernel" >> copy/builder/supported-kernels
	echo "# a comment" >> copy/builder/build-root.sh
	sed -i '/^#/!s/.*/9.9.9/' copy/builder/version
	[ "$(inputs 6.1)" = "${current##*-}" ]
)
tap_is $? 0 "a line for another kernel, and a release, make no module outdated"
(
	data=$PWD/copy
	echo >> copy/6.1/epoll.patch
	[ "$(inputs 6.1)" != "${current##*-}" ]
)
tap_is $? 0 "a patch does"

# Which of a package's module and one that was built here is used, by build IDs and versions.
used()
{
	module "$packaged/$running" "$1" "$2"
	module "$state/$running" "$3" "$4"
	basename "$(dirname "$(module_dir "$running")")"
}
tap_is "$(used 1234 "$current" 1234 "$current")" packaged "a package that is up to date"
tap_is "$(used 1234 0.2.0-0 1234 0.2.0-0)" packaged "a package, both outdated"
tap_is "$(used other "$current" 1234 0.2.0-0)" state "not one for another build of the kernel"
tap_is "$(used 1234 0.2.0-0 1234 "$current")" state "not an outdated one, if the other is not"
tap_is "$(used 1234 0.2.0-0 other "$current")" packaged "unless that is for another build"
rm "$state/$running/$file"
module "$packaged/$running" other "$current"
tap_is "$(module_dir "$running")" "$packaged/$running" "there is only a package"
rm -r "$state" "$packaged"
module "$state/$running" other "$current"
dir=$state/$running
tap_is "$(check_fit "$dir" "$dir/$file")" \
	"$dir/$file is for another build of $running: build again" "another build"
rm -r "$state"

# Fields, from a compiler.
cp info.o fields.o
for name in a= a=1 a=2 "b=two words"; do
	python3 "$data/builder/add-modinfo.py" fields.o "$name"
done
tap_is "$(for name in license version a b; do field fields.o $name; done)" "GPL

2
two words" "fields; the last of a name counts"
echo 'int x;' > none.c
gcc -c -o none.o none.c
tap_is "$(python3 "$data/builder/add-modinfo.py" none.o version=1 2>&1; echo $?)" \
	"the module has no .modinfo
1" "no fields in what is no module"

# The environment in the build root.
tap_is "$(
	export https_proxy="http://me:secret@proxy
		" no_proxy=local other=other
	environment=()
	environment_of_root
	tap_function()
	{
		:
	}
	export -f tap_function
	[[ "${environment[*]}" != *secret* ]] || echo "secret in the arguments"
	"${environment[@]}" sh -c 'env -0 | sort -z' | sed -z 's/\(PATH\|PWD\)=.*/\1/' |
		tr '\0' ,)" "DEBIAN_FRONTEND=noninteractive,HOME=/root,LC_ALL=C.UTF-8,PATH,PWD,\
https_proxy=http://me:secret@proxy
		,no_proxy=local," "proxies are in the root's environment alone"

# Without a network, and with a proxy that only apt's configuration knows.
tap_is "$(http_proxy=http://127.0.0.1:9 kernel_package "$PWD/apt" 6.1.0-50-amd64 6.1 bookworm \
	2> /dev/null)" "the archive cannot be read" "no network"
printf 'Acquire::http::Proxy "http://127.0.0.1:9/it'\''s";\n' > apt.conf
tap_is "$(export APT_CONFIG=$PWD/apt.conf
	use_proxy_of_apt
	sh -c 'echo "$http_proxy"')" "http://127.0.0.1:9/it's" "a proxy of apt"
printf 'Acquire::http::Proxy::deb.debian.org "DIRECT";\n' >> apt.conf
tap_is "$(export APT_CONFIG=$PWD/apt.conf http_proxy=http://127.0.0.1:9
	use_proxy_of_apt
	sh -c 'echo "$http_proxy"')" "" "and none for the archive"
echo 'Acquire::http::Proxy-Auto-Detect "/none";' > apt.conf
tap_is "$(set -eo pipefail
	export APT_CONFIG=$PWD/apt.conf http_proxy=http://127.0.0.1:9
	use_proxy_of_apt
	sh -c 'echo "$http_proxy"')" "http://127.0.0.1:9" "one of the environment stays"

# A build with steps that do nothing but write what they are given, and an archive.
mmdebstrap()
{
	:
}
apt-get()
{
	[ ! -e offline ]
}
apt-cache()
{
	[ "${*: -2:1}" = madison ] && sed "s/^/ ${*: -1} |    /; s/$/ | archive/" archive
}
make_root()
{
	mkdir -p "$1/build"
	echo "a root" >> "$top_of_test/roots"
}
get_kernel()
{
	echo "$4" > "$top_of_test/kernel"
}
needed_patches()
{
	echo "a patch"
}
build_module()
{
	cd "$1/build" && module "$PWD/$version" 1234 "$own" "$package" &&
		mv "$version/$file" "$name.ko" && replace_module "$2"
}
unshare()
{
	[ ! -e "$top_of_test/chroot" ]
}
# A half of a root takes all.
df()
{
	[ ! -e "$cache/$version/root/half" ] || echo 2 > free
	printf 'Avail\n%sG\n' "$(cat free)"
}
version=6.12.115+deb13.1-amd64
echo 100 > free
echo 6.12.115-2 > archive
mkdir -p "$cache/$version/root/"{build,half}
# builds [KEEP]: prints what a user sees but times, and what is left
builds()
{
	(
		set -e
		build "$version" "${1-}" 2>&1 | sed 's/: [0-9]* s$//'
	)
	(cd "$cache/$version" && echo "root: $(ls -d root 2> /dev/null)")
}
tap_is "$(builds)" "note: flowfd's own tests have not run on $version; what is built is checked \
against this kernel all the same
[1/4] the archive ...
building for $version, 6.12.115-2, with kpatch-build in $cache/$version: 5 GB there, 1500 MB of \
downloads, and then about 8 minutes
[2/4] build root (trixie) ...
[2/4] build root (trixie)
[3/4] kernel's source, symbols and compiler ...
[3/4] kernel's source, symbols and compiler
[4/4] livepatch ...
[4/4] livepatch
built $state/$version/$file
root: " "a kernel that was not tested is built, the note is first, no root is left"
tap_is "$(builds | tail -n 2) $(wc -l < roots)" "$state/$version/$file is up to date
root:  1" "it is not repeated"
tap_is "$(stat -c %a "$cache/$version/private-lock")" 600 "users cannot hold its lock"
tap_is "$(builds keep | tail -n 1) $(wc -l < roots)" "root: root 2" "a build that keeps its root"
rm -r "${state:?}/$version"
tap_is "$(builds keep | grep -c "already done") $(wc -l < roots)" "2 2" "it is used again"
rm -r "${state:?}/$version" "${cache:?}/$version/root"
tap_is "$(builds keep | tail -n 2) $(wc -l < roots)" "built $state/$version/$file
root: root 3" "unless somebody has removed it"
echo 6.12.116-1 > archive
rm -r "${state:?}/$version"
tap_is "$(builds | tail -n 1) $(wc -l < roots)" "root:  4" "but not for another kernel"
rm -r "${state:?}/$version"
for name in offline free archive chroot; do
	rm -f "$PWD"/{offline,free,archive,chroot}
	echo 100 > free
	echo 6.12.115-2 > archive
	case $name in
	offline) touch offline && wanted="the archive cannot be read" ;;
	free) echo 2 > free && wanted="a build needs 5 GB in $cache/$version, where 2 GB are free" ;;
	archive) : > archive && wanted="the archive does not have kernel $version (any more): boot a \
newer one" ;;
	chroot) touch chroot && wanted="a build mounts file systems, which this container, or this \
chroot without a mount at /, does not allow" ;;
	esac
	tap_is "$(builds | tail -n 2) $(wc -l < roots)" "$wanted
root:  4" "$name: refused before anything is made"
done
rm chroot
echo 6.12.115-1 > "installed-$version"
tap_is "$(builds | tail -n 2)" "the archive does not have linux-headers-$version 6.12.115-1 (any \
more): boot a newer kernel
root: " "an installed kernel that the archive has no more"
echo 6.12.115-2 > "installed-$version"
echo 6.12.115-3 | tee archive > "installed-$version"
tap_is "$(builds | tail -n 2)" "built $state/$version/$file
root: " "an upgrade of the kernel is another build"
tap_is "$(
	get_kernel()
	{
		rm -r "${cache:?}/$version"
		false
	}
	rm "${state:?}/$version/$file"
	builds 2> /dev/null | tail -n 1)" "$cache/$version is gone: the removal of a kernel removes its \
builds" "a kernel that is removed meanwhile"
mkdir "$cache/$version"
running=$version
runs=6.12.115-2
uname()
{
	echo "#1 SMP Debian $runs (2026-01-01)"
}
tap_is "$(builds | head -n 1)" "the running kernel is not the linux-image-$version that is \
installed: reboot first" "another build of the kernel is installed"

# There is a whole module whatever is on the disk.
mkdir replaced
touch "$name.ko"
tap_is "$(
	for command in cp sync mv; do
		eval "$command() { echo $command \"\$@\"; }"
	done
	replace_module replaced)" "cp $name.ko replaced/$file.new
sync replaced/$file.new
mv replaced/$file.new replaced/$file" "the order in which a module is replaced"
tap_done
