#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# loads.sh: flowfd's livepatch on a real kernel: beside other livepatches (vendor.c), loaded before
# and after it, while a program opens, watches and closes files; one build of it taking over
# from another; tasks that it waits for; what is refused. The last test in the guest, as a
# lockdown lasts until the next boot. Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

. selftests/tap.sh
tool=livepatch/flowfd-livepatch
version=$(uname -r)
built=$FLOWFD_LIVEPATCH_DIR/$version
vendor=$FLOWFD_BUILD/livepatch-vendor
tests=$FLOWFD_BUILD/livepatch-tests
me=flowfd-livepatch:
patience=300
export FLOWFD_LIVEPATCH_PATIENCE=$patience
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. livepatch/loaded-livepatch.sh
name=$(modinfo -F name "$built/flowfd_livepatch.ko")
read=userfaultfd_read
[[ " $(modinfo -F flowfd_functions "$built/flowfd_livepatch.ko") " != *" ${read}_iter "* ]] ||
	read=userfaultfd_read_iter
output=$(mktemp)

# Half of the time, as emulated processors have little of it.
races()
{
	while [ ! -e "$output.stop" ]; do
		FLOWFD_STRESS_MS=300 nice -n 19 "$tests/epoll" || echo failed
		sleep 1
	done
}

# vendor_in NAME, vendor_out NAME
vendor_in()
{
	insmod "$vendor/$1.ko" && wait_for in_force "$1"
}
vendor_out()
{
	echo 0 > "$sysfs/$1/enabled" && wait_for is_gone "$1" && wait_for has_no_module "$1"
}

# Prints the exit status of the command, its first line, and those of a later livepatch.
state()
{
	local got
	got=$("$tool" status)
	echo "$?: $(sed -n '1p; /later/p' <<< "$got")"
}

# Whether ours is in force; without the tool, which takes seconds on an emulated processor.
is_ours()
{
	in_force "$name" && echo ours
}

# who_reads: prints what a read from a userfaultfd that has no messages gets: EAGAIN, or
# ESTALE from vendor_overlapping
who_reads()
{
	perl -e '$fd = syscall(323, 2048);
		open $uffd, "+<&=", $fd;
		$api = pack "QQQ", 0xaa, 0, 0;
		ioctl $uffd, 0xc018aa3f, $api;
		sysread $uffd, $message, 32;
		print $!{ESTALE} ? "vendor" : $!{EAGAIN} ? "kernel or flowfd" : $!'
}

# Prints who prints /proc/version
who_prints()
{
	grep -qx vendor /proc/version && echo vendor || echo kernel
}

# tool_is STATUS LINE WHAT ARGUMENT...
tool_is()
{
	local got
	got=$("$tool" "${@:4}" 2>&1)
	tap_is "$?: $got" "$1: $2" "$3"
}

races > "$output" 2>&1 &

# ours WHAT: it is in force
ours()
{
	tool_is 0 "$me in force" "$1" load
}

# Beside it, before and after ours.
for order in before after; do
	[ $order = before ] || ours "load"
	tap_ok "another livepatch, $order ours" vendor_in vendor_beside
	[ $order = after ] || ours "load beside another livepatch"
	tap_is "$(who_prints) $(is_ours)" "vendor ours" "both are in force"
	if [ $order = before ]; then
		tap_ok "the other is unloaded" vendor_out vendor_beside
		tap_is "$(who_prints) $(is_ours)" "kernel ours" "ours stays"
		tool_is 0 "$me unloaded" "unload" unload
	else
		tool_is 0 "$me unloaded" "unload" unload
		tap_is "$(who_prints) $(is_ours)" "vendor " "the other stays"
		tap_ok "the other is unloaded" vendor_out vendor_beside
	fi
done

# With a function that ours patches, after ours and before.
ours "load"
tap_ok "another livepatch that patches the same function" vendor_in vendor_overlapping
tap_is "$(who_reads) $(state)" "vendor 1: $me in force in part
  $read,1 is that of vendor_overlapping, which came later" "it has the function, status says so"
tap_ok "it is unloaded" vendor_out vendor_overlapping
tap_is "$(who_reads) $(state)" "kernel or flowfd 0: $me in force" "ours has it again, says status"
tool_is 0 "$me unloaded" "unload" unload
tap_ok "it comes before ours" vendor_in vendor_overlapping
tool_is 1 "$me the livepatch vendor_overlapping patches $read, too: unload that first" \
	"load is refused" load
tap_is "$(who_reads)" "vendor" "the other stays"
tap_ok "it is unloaded" vendor_out vendor_overlapping

# One that replaces all others, after ours and before.
ours "load"
tap_ok "a cumulative livepatch" vendor_in vendor_replacing
tap_is "$(who_prints) $(state)" "vendor 3: $me not in force: another livepatch has replaced it, \
or it was unloaded without this tool: 'flowfd-livepatch load' loads it again" "it replaces ours"
ours "load again"
tap_is "$(who_prints) $(is_ours)" "vendor ours" "both are in force"
tap_ok "the cumulative one is unloaded" vendor_out vendor_replacing
tap_ok "and comes again" vendor_in vendor_replacing
tool_is 0 "$me unloaded" "unload what was replaced" unload
tap_ok "no module is left" eval ! ls -d "$modules"/flowfd_livepatch*
ours "load after a cumulative livepatch"
tap_ok "the cumulative one is unloaded" vendor_out vendor_replacing

# A build takes over from another, whose name and version have the same length.
other=${name%?????}00000
mkdir -p "$output.dir/$version"
sed "s/$name/$other/g; s/-${name#flowfd_livepatch_}/-${other#flowfd_livepatch_}/" \
	"$built/flowfd_livepatch.ko" > "$output.dir/$version/flowfd_livepatch.ko"
tap_is "$(FLOWFD_LIVEPATCH_DIR=$output.dir "$tool" load 2>&1)" \
	"$me warning: $output.dir/$version/flowfd_livepatch.ko is outdated: build again
$me in force" "a build takes over from another"
tap_is "$(our_names "$sysfs") $(our_names "$modules")" "$other $other" "only it is loaded"
ours "and back"
tap_is "$(our_names "$sysfs") $(our_names "$modules")" "$name $name" "only it is loaded"

# A task that waits for what user space delays, in a function of ours, and in the kernel's.
# slow_read WHERE: begins one; slow_end: and ends it
slow_read()
{
	exec 3< <(exec "$tests/slow-call" 2>&1)
	slow=$!
	read -r said <&3
	tap_is "$said" "waits" "a read into memory that nobody provides waits, $1"
}
slow_end()
{
	kill -9 "$slow"
	exec 3<&-
}
# tried COMMAND: its status and output, with little patience, without the task's stack
tried()
{
	local got
	got=$(FLOWFD_LIVEPATCH_PATIENCE=10 "$tool" "$1" 2>&1)
	echo "$?: $(sed '2s/[0-9]* slow-call.*/slow-call/' <<< "$got")"
}
slow_read "in a function of ours"
tap_ok "another livepatch can come" vendor_in vendor_beside
tap_ok "and go" vendor_out vendor_beside
tap_is "$(tried unload)" "1: $me not unloaded from all tasks after 10 s, and in force again. It \
waited for:
  waits for slow-call" "unload that does not come to an end is taken back"
tap_is "$(is_ours)" "ours" "it is in force again"
slow_end
tool_is 0 "$me unloaded" "unload" unload
touch "$output.stop"
wait
tap_is "$(grep -E '^(not ok|failed)|Expected|terminated' "$output")" "" \
	"files and epolls are closed"
tap_ok "there were races" grep -q '[0-9] rounds' "$output"

slow_read "in the kernel's own code"
tap_is "$(tried load)" "1: $me not in force for all tasks after 10 s, and taken back. It waited for:
  waits for slow-call" "load that does not come to an end is taken back"
tap_is "$(our_names "$modules")" "" "nothing is loaded"
slow_end

# What is refused.
export FLOWFD_LIVEPATCH_DIR=/tmp/livepatch
work=$FLOWFD_LIVEPATCH_DIR/$version
loaded=$sysfs/$name
mkdir -p "$work"
cp "$built/flowfd_livepatch.ko" "$work"
ours "load"
tap_is "$("$tool" status --json | grep -oE '"state": "in force", "why": ""|"warnings": 0')" \
	$'"state": "in force", "why": ""\n"warnings": 0' "status as JSON: the kernel has not warned"

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
tool_is 0 "$me unloaded" "unload waits for that task" unload
kill "$reader"

# As after an unload without the tool.
"$tool" load > /dev/null
echo 0 > "$loaded/enabled"
while [ -d "$loaded" ]; do
	sleep 0.1
done
ours "load where the module was left"
tool_is 0 "$me unloaded" "unload" unload

# A signature that the kernel can read; it does not know the key. One that it cannot read
# would be refused.
cp "$FLOWFD_BUILD/livepatch-vendor/signed.ko" "$work/flowfd_livepatch.ko"
tap_is "$(modinfo -F sig_id "$work/flowfd_livepatch.ko")" "PKCS#7" "it is signed"
ours "load a signed module"
tool_is 0 "$me unloaded" "unload it" unload
cp "$built/flowfd_livepatch.ko" "$work"

# As after a Secure Boot.
mountpoint -q /sys/kernel/security || mount -t securityfs security /sys/kernel/security
echo integrity > /sys/kernel/security/lockdown
tool_is 1 "$me this kernel loads signed modules only (Secure Boot or lockdown), \
and $work/flowfd_livepatch.ko is not signed: see SECURE BOOT in \
flowfd-livepatch(8)" "lockdown" load
tap_done
