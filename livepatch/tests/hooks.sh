#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# hooks.sh: what the packages of kernels run, and the removal of ours. Prints TAP.
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
data=$PWD/livepatch
prerm=$PWD/debian/flowfd-livepatch.prerm
cd "$(mktemp -d)" || exit
mkdir -p bin share usr/6.1.0-50-amd64 var/6.1.0-50-amd64
moved="s|/var/lib/flowfd-livepatch|$PWD/var|; s|/var/cache/flowfd-livepatch|$PWD/cache|
	s|/usr/lib/flowfd-livepatch|$PWD/usr|; s|/usr/share/flowfd-livepatch|$PWD/share|"
for hook in postinst postrm; do
	sed "$moved" "$data/$hook.d/flowfd-livepatch" > $hook
done
sed "$moved" "$data/built-module.sh" > share/built-module.sh
cp -r "$data/builder" share
# One of the two units is enabled; the installed kernels are files; another build runs.
printf '#!/bin/sh\necho "$*" | grep -q "${ENABLED:-nothing}"\n' > bin/systemctl
printf '#!/bin/sh\ncat "%s/installed-${4#linux-image-}"\n' "$PWD" > bin/dpkg-query
printf '#!/bin/sh\necho 6.1.0-50-amd64\n' > bin/uname
chmod +x bin/*
postinst()
{
	PATH=$PWD/bin:$PATH bash postinst "$@" 2>&1 || echo failed
}
# module DIR PACKAGE: one that was built for this version of the kernel's package
module()
{
	printf '\0version=1\0vermagic=%s\0flowfd_package=%s\0' $kernel "$2" \
		> "$1/$kernel/flowfd_livepatch.ko"
}
# none VERSION [PACKAGE]
none()
{
	echo "There is no livepatch of flowfd for $1${2:+ ($2)}: run 'flowfd-livepatch build \
--kernel $1', or install flowfd-livepatch-$1"
}
kernel=6.1.0-50-amd64
export ENABLED=flowfd-livepatch.service
tap_is "$(postinst $kernel)" "$(none $kernel)" "a kernel without a livepatch"
tap_ok "nobody is told" env PATH="$PWD/bin:$PATH" bash -c "exec bash postinst $kernel 2> /dev/full"
mkfifo gone
exec 8<> gone
exec 9> gone 8>&-
tap_ok "the reader is gone" env PATH="$PWD/bin:$PATH" bash -c "exec bash postinst $kernel 2>&9"
exec 9>&-
ENABLED=flowfd-livepatch.timer
tap_is "$(postinst $kernel)" "$(none $kernel)" "where the timer is enabled"
ENABLED=
tap_is "$(postinst $kernel)" "" "not where nothing is enabled"
ENABLED=flowfd-livepatch.service
tap_is "$(postinst)" "" "no kernel"
tap_is "$(postinst 6.12.118+deb13-rt-amd64)" "There is no livepatch of flowfd for \
6.12.118+deb13-rt-amd64: flowfd has no patches for this kernel, see KERNELS in flowfd-livepatch(8)" \
	"a kernel that there are no patches for"
echo half-configured 6.1.176-1 > installed-$kernel
for dir in usr var; do
	module $dir 6.1.176-1
	tap_is "$(postinst $kernel)" "" "a kernel that has one in $dir"
	echo half-configured 6.1.176-2 > installed-$kernel
	tap_is "$(postinst $kernel)" "$(none $kernel 6.1.176-2)" "an upgrade to another build"
	echo config-files 6.1.176-2 > installed-$kernel
	tap_is "$(postinst $kernel)" "" "a package that was removed, and leaves its version"
	rm installed-$kernel
	tap_is "$(postinst $kernel)" "" "a kernel without a package"
	echo half-configured 6.1.176-1 > installed-$kernel
	rm $dir/$kernel/*.ko
done
module usr 6.1.176-2
module var 6.1.176-1
tap_is "$(postinst $kernel)" "" "one of two is for this build"
rm share/built-module.sh
tap_is "$(postinst 6.1.0-999-amd64)" "" "a package that was removed"

# postrm PARAMETERS [VERSION]: prints what is left
postrm()
{
	DEB_MAINT_PARAMS=$1 sh postrm "${@:2}"
	echo var/* cache/*
}
mkdir -p {var,cache}/6.1.0-56-amd64 cache/$kernel/root
touch var/crashes-{$kernel,6.1.0-56-amd64}
all=$(echo var/* cache/*)
tap_is "$(postrm "upgrade 6.1.176-2" $kernel)" "$all" "a kernel that is upgraded keeps its builds"
tap_is "$(postrm remove; postrm purge ""; postrm purge ..; postrm purge 6/1)" "$all
$all
$all
$all" "no version"
mkdir kept
cp -r var cache kept
for how in remove purge; do
	cp -r kept/* .
	tap_is "$(postrm $how $kernel)" "var/6.1.0-56-amd64 var/crashes-6.1.0-56-amd64 \
cache/6.1.0-56-amd64" "$how of a kernel leaves nothing of its builds"
done

# The removal of the package, where a livepatch is loaded: on a host, in a chroot, in a
# container with systemd, and in one without, which has no systemd-detect-virt.
mkdir -p modules/flowfd_livepatch_1 systemd with without
sed "s|/sys/module|$PWD/modules|; s|/run/systemd/system|$PWD/systemd|; /^#DEBHELPER#/d" \
	"$prerm" > removal
for command in deb-systemd-invoke flowfd-livepatch; do
	printf '#!/bin/sh\necho "%s $*"\n' $command > without/$command
done
printf '#!/bin/sh\n[ "$CHROOT" ]\n' > without/ischroot
printf '#!/bin/sh\n[ "$CONTAINER" ]\n' > with/systemd-detect-virt
chmod +x with/* without/*
cp -p without/* with
# prerm_in PATH ARGUMENT: prints what it does
prerm_in()
{
	PATH=$PWD/$1 /bin/sh removal "$2" 2>&1
}
export CHROOT='' CONTAINER=''
tap_is "$(prerm_in with upgrade)" "" "an upgrade does not unload"
tap_is "$(prerm_in with remove)" "deb-systemd-invoke stop flowfd-livepatch.timer flowfd-livepatch.service
flowfd-livepatch unload
deb-systemd-invoke stop flowfd-livepatch-guard.service" "the removal does, and stops the timer first"
tap_is "$(CHROOT=1 prerm_in with remove; CONTAINER=1 prerm_in with remove)" "" \
	"not in a chroot or a container"
rmdir systemd
tap_is "$(prerm_in without remove)" "" "nor in a container without systemd"
tap_done
