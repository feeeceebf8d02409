#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# others.sh: flowfd's livepatch beside other livepatches (vendor/), loaded before and after
# it; and one build of it taking over from another. Meanwhile a program opens, watches and
# closes files. Prints TAP.
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
has_epoll=
[[ " $(modinfo -F flowfd_fixes "$built/flowfd_livepatch.ko") " != *" epoll "* ]] ||
	has_epoll=1
read=userfaultfd_read
[[ " $(modinfo -F flowfd_functions "$built/flowfd_livepatch.ko") " != *" ${read}_iter "* ]] ||
	read=userfaultfd_read_iter
output=$(mktemp)

races()
{
	while [ ! -e "$output.stop" ]; do
		FLOWFD_STRESS_MS=300 nice -n 19 "$tests/epoll" || echo failed
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

# Prints the first line of the status, and its exit status.
state()
{
	local got
	got=$("$tool" status)
	echo "$?: ${got%%$'\n'*}"
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

# retired: whether closes take epmutex, too; always no without the fix of epoll
retired()
{
	[ "$(cat "$modules/$name/retire" 2> /dev/null)" = 1 ]
}

# tool_is STATUS LINE WHAT ARGUMENT...
tool_is()
{
	local got
	got=$("$tool" "${@:4}" 2>&1)
	tap_is "$?: $got" "$1: $2" "$3"
}

races > "$output" 2>&1 &

# Before ours, beside it.
tap_ok "another livepatch" vendor_in vendor_beside
tool_is 0 "$me in force" "load beside another livepatch" load
tap_is "$(who_prints) $(state)" "vendor 0: $me in force" "both are in force"
tap_ok "closes take epmutex no more" eval ! retired
tap_ok "the other is unloaded" vendor_out vendor_beside
tap_is "$(who_prints) $(state)" "kernel 0: $me in force" "ours stays"

# After ours, beside it.
tap_ok "another livepatch, after ours" vendor_in vendor_beside
tap_is "$(who_prints) $(state)" "vendor 0: $me in force" "both are in force"
[ -z "$has_epoll" ] || tap_ok "closes take epmutex, too" retired
tool_is 0 "$me unloaded" "unload" unload
tap_is "$(who_prints) $(state)" "vendor 3: $me not loaded" "the other stays"
tool_is 0 "$me in force" "load again" load
tap_ok "closes take epmutex no more" eval ! retired
tap_ok "the other is unloaded" vendor_out vendor_beside

# After ours, with a function that ours patches.
tap_ok "another livepatch that patches the same function" vendor_in vendor_overlapping
tap_is "$(who_reads) $(state)" "vendor 1: $me in force in part" "it has the function"
tap_is "$("$tool" status | grep later)" "  $read,1 is that of vendor_overlapping, which came \
later" "status says so"
tap_ok "it is unloaded" vendor_out vendor_overlapping
tap_is "$(who_reads) $(state)" "kernel or flowfd 0: $me in force" "ours has it again"
tool_is 0 "$me unloaded" "unload" unload

# Before ours, with that function.
tap_ok "another livepatch that patches the same function" vendor_in vendor_overlapping
tool_is 1 "$me the livepatch vendor_overlapping patches $read, too: 'load \
--override' puts this one in its place" "load is refused" load
tap_is "$(who_reads) $(state)" "vendor 3: $me not loaded" "nothing is loaded"
tool_is 0 "$me in force" "unless it is told" load --override
tap_is "$(who_reads)" "kernel or flowfd" "ours has the function"
tool_is 0 "$me unloaded" "unload" unload
tap_is "$(who_reads)" "vendor" "the other has it again"
tap_ok "it is unloaded" vendor_out vendor_overlapping

# After ours, in its place.
tool_is 0 "$me in force" "load" load
tap_ok "a cumulative livepatch" vendor_in vendor_replacing
tap_is "$(who_prints) $(state)" "vendor 3: $me replaced by vendor_replacing" \
	"it replaces ours"
tool_is 0 "$me in force" "load again" load
tap_is "$(who_prints) $(state)" "vendor 0: $me in force" "both are in force"
tap_ok "the cumulative one is unloaded" vendor_out vendor_replacing
tool_is 0 "$me unloaded" "unload" unload
tool_is 0 "$me in force" "load" load
tap_ok "a cumulative livepatch" vendor_in vendor_replacing
tool_is 0 "$me unloaded" "unload what was replaced" unload
tap_ok "no module is left" eval ! ls -d "$modules"/flowfd_livepatch*
# Before ours.
tool_is 0 "$me in force" "load after a cumulative livepatch" load
tap_is "$(who_prints) $(state)" "vendor 0: $me in force" "both are in force"
tap_ok "the cumulative one is unloaded" vendor_out vendor_replacing

# A build takes over from another, whose name and version have the same length.
other=${name%?????}00000
mkdir -p "$output.dir/$version"
cp "$built/build-id" "$output.dir/$version"
sed "s/$name/$other/g; s/-${name#flowfd_livepatch_}/-${other#flowfd_livepatch_}/" \
	"$built/flowfd_livepatch.ko" > "$output.dir/$version/flowfd_livepatch.ko"
tap_is "$(FLOWFD_LIVEPATCH_DIR=$output.dir "$tool" load 2>&1)" \
	"$me warning: $output.dir/$version/flowfd_livepatch.ko is outdated: build again
$me in force" "a build takes over from another"
tap_is "$(our_names "$sysfs") $(our_names "$modules")" "$other $other" "only it is loaded"
tap_is "$("$tool" status | sed -n 3p)" "  outdated: build again, and load" \
	"status says that it is outdated"
tool_is 0 "$me in force" "and back" load
tap_is "$(our_names "$sysfs") $(our_names "$modules")" "$name $name" "only it is loaded"

# A close that waits for what user space delays keeps neither a retirement nor the kernel
# waiting, nor other modules.
if [ "$has_epoll" ]; then
	exec 3< <(exec "$tests/slow-call" close 2>&1)
	slow=$!
	read -r said <&3
	tap_is "$said" "waits" "a close waits"
	tap_ok "another livepatch can come" vendor_in vendor_beside
	tap_ok "and go" vendor_out vendor_beside
	FLOWFD_LIVEPATCH_PATIENCE=40 "$tool" unload > "$output.unload" 2>&1 &
	until grep -qsx 0 "$sysfs/$name/enabled"; do
		sleep 0.1
	done
	tap_ok "modules can be loaded while unload waits for the close" timeout 60 modprobe dummy
	tap_ok "status names the close" eval '"$tool" status | grep -q "waits for .* slow-call"'
	wait $!
	tap_is "$?: $(sed '2s/[0-9]* slow-call.*/slow-call/' "$output.unload")" \
		"1: $me not unloaded from all tasks after 40 s, and in force again. It waited for:
  waits for slow-call" "unload that does not come to an end is taken back"
	tap_is "$(state)" "0: $me in force" "it is in force again"
	tap_ok "closes take epmutex, too" retired
	tap_ok "status says so" eval '"$tool" status | grep -q "an unload was taken back"'
	tap_ok "another livepatch can come" vendor_in vendor_beside
	tap_ok "and go" vendor_out vendor_beside
	kill -9 "$slow"
	exec 3<&-
	tool_is 0 "$me unloaded" "unload ends after the close" unload
else
	tool_is 0 "$me unloaded" "unload" unload
fi
touch "$output.stop"
wait
tap_is "$(grep -E '^(not ok|failed)|Expected|terminated' "$output")" "" \
	"files and epolls are closed"
tap_ok "there were connections" grep -q '[1-9] connections' "$output"

# In the kernel's own code, a read into memory that nobody provides.
exec 3< <(exec "$tests/slow-call" read 2>&1)
slow=$!
read -r said <&3
tap_is "$said" "waits" "a read waits in the kernel's own code"
got=$(FLOWFD_LIVEPATCH_PATIENCE=20 "$tool" load 2>&1)
tap_is "$?: $(sed '2s/[0-9]* slow-call.*/slow-call/' <<< "$got")" \
	"1: $me not in force for all tasks after 20 s, and taken back. It waited for:
  waits for slow-call" "load that does not come to an end is taken back"
tap_is "$(state) $(our_names "$modules")" "3: $me not loaded " "nothing is loaded"
kill -9 "$slow"
exec 3<&-
tap_done
