#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# refusals.sh: what flowfd-livepatch refuses to load on a real kernel, and what it says of a
# task that it waits for. The last test in the guest, as a lockdown lasts until the next boot.
# Prints TAP.
set -u

. selftests/tap.sh
tool=livepatch/flowfd-livepatch
version=$(uname -r)
built=$FLOWFD_LIVEPATCH_DIR/$version
export FLOWFD_LIVEPATCH_DIR=/tmp/livepatch
work=$FLOWFD_LIVEPATCH_DIR/$version
name=$(modinfo -F name "$built/flowfd_livepatch.ko")
loaded=/sys/kernel/livepatch/$name
me=flowfd-livepatch:

# refused STATUS MESSAGE WHAT ARGUMENT...: compares exit status and output
refused()
{
	local got
	got=$("$tool" "${@:4}" 2>&1)
	tap_is "$?: $got" "$1: $2" "$3"
}

mkdir -p "$work"
refused 1 "$me there is no module for $version: run 'flowfd-livepatch build', or \
install flowfd-livepatch-$version" "no module" load
refused 1 "$me not loaded" "unload, not loaded" unload
cp "$built"/{flowfd_livepatch.ko,build-id} "$work"
running=$(cat "$built/build-id")
sed -i "s/flowfd_kernel=$running/flowfd_kernel=${running//?/0}/" "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko is for another build of $version: build again" \
	"wrong build id" load
cp "$built/flowfd_livepatch.ko" "$work"
sed -i "s/vermagic=$version/vermagic=${version%?}0/" "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko is for kernel ${version%?}0; this \
kernel is $version" "wrong kernel" load
cp "$built/flowfd_livepatch.ko" "$work"
mkdir -p /etc/flowfd-livepatch
touch /etc/flowfd-livepatch/off
refused 1 "$me switched off by /etc/flowfd-livepatch/off" "switched off" load
rm -r /etc/flowfd-livepatch
refused 0 "$me in force" "load" load
refused 0 "$me in force" "load again" load
tap_is "$("$tool" status --json | grep -o '"state": "in force", "why": ""')" \
	'"state": "in force", "why": ""' "status as JSON"
tap_is "$("$tool" status | grep -c 'since the load: 0')" 1 "the kernel has not warned"

# A task that sleeps in a patched function blocks the transition until the kernel signals it,
# after 15 seconds. On a busy machine that is enough for one command.
perl -e '$0 = "a\e]b\nc";
	$fd = syscall(323, 0);
	open $uffd, "+<&=", $fd;
	$api = pack "QQQ", 0xaa, 0, 0;
	ioctl $uffd, 0xc018aa3f, $api;
	sysread $uffd, $message, 32' &
reader=$!
until grep -q '^0 0x3 0x[0-9a-f]* 0x20 ' "/proc/$reader/syscall"; do
	sleep 0.1
done
echo 0 > "$loaded/enabled"
tap_is "$("$tool" status | sed -n '1p; /waits for/s/, in .*//p')" "$me being unloaded
  waits for $reader a?]b?c" "status names the task that it waits for"
refused 0 "$me unloaded" "unload waits for that task" unload
kill "$reader"

# As after an unload without the tool.
"$tool" load > /dev/null
echo 0 > "$loaded/enabled"
while [ -d "$loaded" ]; do
	sleep 0.1
done
refused 0 "$me in force" "load where the module was left" load
refused 0 "$me unloaded" "unload" unload

# A signature that the kernel can read; it does not know the key. One that it cannot read
# would be refused.
cp "$FLOWFD_BUILD/livepatch-vendor/signed.ko" "$work/flowfd_livepatch.ko"
tap_is "$(modinfo -F sig_id "$work/flowfd_livepatch.ko")" "PKCS#7" "it is signed"
refused 0 "$me in force" "load a signed module" load
refused 0 "$me unloaded" "unload it" unload
cp "$built/flowfd_livepatch.ko" "$work"

# As after a Secure Boot.
mountpoint -q /sys/kernel/security ||
	mount -t securityfs security /sys/kernel/security
echo integrity > /sys/kernel/security/lockdown
refused 1 "$me this kernel loads signed modules only (Secure Boot or lockdown), \
and $work/flowfd_livepatch.ko is not signed: see SECURE BOOT in \
flowfd-livepatch(8)" "lockdown" load
tap_done
