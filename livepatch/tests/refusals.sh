#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# refusals.sh: what flowfd-livepatch refuses, and its messages. The last test in the
# guest, as a lockdown lasts until the next boot. Prints TAP.
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
own=$(modinfo -F version "$built/flowfd_livepatch.ko")

# refused STATUS MESSAGE WHAT ARGUMENT...: compares exit status and output
refused()
{
	local got
	got=$("$tool" "${@:4}" 2>&1)
	tap_is "$?: $got" "$1: $2" "$3"
}

tap_is "$("$tool" --help | head -n 1)" "usage: flowfd-livepatch COMMAND" "help"
usage=$("$tool" --help)
refused 2 "$usage" "no command"
refused 2 "$usage" "unknown command" boom
refused 2 "$usage" "too many arguments" load now
refused 2 "$usage" "unknown option of build" build --jobs 2
refused 2 "$usage" "option without its value" build --kernel
refused 2 "$usage" "unknown option of load" load --replace
refused 2 "$usage" "no time to watch" load --watch
refused 2 "$usage" "a time that is no number" load --watch 5m
refused 2 "$usage" "a time that the shell cannot count" load --watch 99999999999999999999
refused 2 "$usage" "a key for no package" build --sign key certificate
refused 2 "$usage" "a key without certificate" build --package . --sign key
refused 2 "$usage" "argument of status" status now
refused 2 "$usage" "argument of list" list all
refused 1 "$me there are no patches for kernel 5.10.0-1-amd64" \
	"no patches" build --kernel 5.10.0-1-amd64

mkdir -p "$work"
(umask 077 && touch "$work/private-lock")
exec 8>> "$work/private-lock"
flock 8
refused 1 "$me another build for $version is running" "two builds" build
exec 8>&-

refused 1 "$me there is no module for $version: run 'flowfd-livepatch build', or \
install flowfd-livepatch-$version" "no module" load
touch "$work/fixed"
refused 0 "$me already fixed in this kernel" "a kernel that needs none" load
refused 0 "$me already fixed in this kernel" "a kernel that needs none: verify" verify
rm "$work/fixed"
refused 3 "$me not loaded" "status, not loaded" status
refused 1 "$me not loaded" "unload, not loaded" unload

cp "$built"/* "$work"
refused 0 "$me $work/flowfd_livepatch.ko fits this kernel" "verify" verify
running=$(cat "$built/build-id")
sed -i "s/flowfd_kernel=$running/flowfd_kernel=${running//?/0}/" "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko is for another build of $version \
(build id ${running//?/0}; this kernel's is $running): build again" "wrong build id" load
cp "$built/flowfd_livepatch.ko" "$work"
sed -i "s/vermagic=$version/vermagic=${version%?}0/" "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko is for kernel ${version%?}0; this \
kernel is $version" "wrong kernel" load
sed "s/version=$own/version=${own%?????}00000/" "$built/flowfd_livepatch.ko" \
	> "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko fits this kernel, but is outdated: build again" \
	"an outdated build" verify
sed 's/\x00version=/\x00ver_ion=/' "$built/flowfd_livepatch.ko" \
	> "$work/flowfd_livepatch.ko"
refused 1 "$me $work/flowfd_livepatch.ko is of an old version: build again" \
	"a build that has no version" load
cp "$built/flowfd_livepatch.ko" "$work"

mkdir -p /etc/flowfd-livepatch
touch /etc/flowfd-livepatch/off
refused 1 "$me switched off by /etc/flowfd-livepatch/off" "switched off" load
rm -r /etc/flowfd-livepatch

refused 0 "$me in force
$me the kernel is well after 3 s" "load and watch" load --watch 3
refused 0 "$me in force" "load again" load
refused 0 "$version  $own  built here, fixes $(modinfo -F flowfd_fixes \
"$work/flowfd_livepatch.ko"), running kernel" "list" list
tap_is "$("$tool" status --json | grep -o '"in_force": true, .*"state": "in force"')" \
	"\"in_force\": true, \"replaced\": false, \"livepatches\": [{\"name\": \"$name\", \
\"version\": \"$own\", \"state\": \"in force\"" "status as JSON"
# Behind the head of that note: sizes of name and content, type 3, name. A module may have
# other notes of GNU.
at=$(LC_ALL=C grep -abPo '\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0' \
	"$work/flowfd_livepatch.ko" | head -n 1 | cut -d : -f 1)
echo -n another | dd of="$work/flowfd_livepatch.ko" bs=1 seek=$((at + 16)) \
	conv=notrunc status=none
refused 1 "$me another build of it is loaded: unload it first" "another build" load
cp "$built/flowfd_livepatch.ko" "$work"

# begin_unload: sets reader, a task that sleeps in a patched function and so blocks the
# transition until the kernel signals it, after 15 seconds. On a busy machine that is
# enough for one command.
begin_unload()
{
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
}

begin_unload
FLOWFD_LIVEPATCH_PATIENCE=1 \
	refused 1 "$me it is being unloaded: see status" "load too early" load
kill "$reader"
"$tool" unload > /dev/null
"$tool" load > /dev/null
begin_unload
tap_is "$("$tool" status | sed -n '1p; 2s/, in .*//p')" "$me being unloaded
  waits for $reader a?]b?c" "status names the task that it waits for"
refused 0 "$me unloaded" "unload waits for that task" unload
kill "$reader"

# As after an unload that timed out.
"$tool" load > /dev/null
echo 0 > "$loaded/enabled"
while [ -d "$loaded" ]; do
	sleep 0.1
done
refused 0 "$me in force" "load where the module was left" load

refused 0 "$me unloaded" "unload" unload

# Something goes wrong while the kernel is watched. What users can write to its log is none
# of that; nor is a flag that tells of a proprietary module. M is: selftests/run does not
# take it for a failure.
tap_ok "the kernel counts warnings and oopses" \
	cat /sys/kernel/warn_count /sys/kernel/oops_count
"$tool" load --watch 600 > "$work/watched" 2>&1 &
until grep -qs "in force" "$work/watched"; do
	sleep 0.1
done
echo "a soft lockup, says a user" > /dev/kmsg
echo 1 > /proc/sys/kernel/tainted
sleep 5
tap_is "$("$tool" status | sed -n 1p)" "$me in force" "no trouble while it is watched"
# A bit for each signal. Nothing would be stopped here, as there is no terminal.
ignored=0x$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$!/status")
tap_is "$((ignored >> (20 - 1) & 1)) $((ignored >> (22 - 1) & 1))" "1 1" \
	"Control-Z and a terminal do not stop it (SIGTSTP, SIGTTOU)"
echo 16 > /proc/sys/kernel/tainted
wait $!
tap_is "$?: $(cat "$work/watched")" "1: $me in force
$me the kernel is not well, it has new taint flags: M
$me unloaded" "trouble while the kernel is watched"
failed=$FLOWFD_LIVEPATCH_DIR/failed-$version
refused 1 "$me version $own was loaded and made trouble, or the machine went down soon \
after: remove $failed to load it again" "load after trouble" load
rm "$failed"

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
