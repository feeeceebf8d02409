#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# health.sh: the kill switch, loads after a crash, trouble with the kernel, and status
# as JSON: functions of flowfd-livepatch, without a kernel. Prints TAP.
# shellcheck disable=SC2034,SC2154,SC2317 # variables of and for the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
# shellcheck source=livepatch/tests/functions.sh
. livepatch/tests/functions.sh
cmdline=cmdline
off_file=off
taint_file=taint
counts=$PWD
boot_id=boot
sysfs=sysfs
modules=modules
mkdir sysfs modules

uname()
{
	echo 6.1.0-50-amd64
}
# What users can have the kernel log is no trouble.
dmesg()
{
	echo "traps: BUG:[812] general protection fault ip:401000"
	echo "INFO: task fuse:1 blocked for more than 120 seconds."
}
# journalctl ... BOOT ...: each boot has its last line
mkdir bin
printf '#!/bin/sh\ncat "%s/seen-$3" 2> /dev/null\n' "$PWD" > bin/journalctl
chmod +x bin/journalctl
PATH=$PWD/bin:$PATH
unload()
{
	say unloaded | tee -a calls
}
# The time passes while somebody waits. Meanwhile the wall clock is set again and again.
echo 1000.50 900.00 > uptime
uptime=uptime
sleep()
{
	local now
	now=$(now)
	echo "$((now + ${1%.*})).50 900.00" > uptime
	SECONDS=$((SECONDS + 86400))
}
eval "$(declare -f pause | sed '1s/pause/real_pause/')"
pause()
{
	sleep "$1"
}
# seen_at UPTIME: a line of the journal
seen_at()
{
	printf '[%5d.123456] host kernel: 9.9 a line\n' "$1"
}

echo 'root=/dev/vda flowfd_livepatch=office' > cmdline
tap_is "$(check_switch)" "" "not switched off"
echo 'root=/dev/vda flowfd_livepatch=off quiet' > cmdline
tap_is "$(check_switch)" "switched off by the kernel parameter flowfd_livepatch=off" \
	"switched off at boot"
true > cmdline
touch off
tap_is "$(check_switch)" "switched off by off" "switched off by a file"
ln -sf nothing off
tap_is "$(check_switch)" "switched off by off" "or a link to nothing"

# A process that guards a load for 100 s, and ends with status $1, or is killed.
patience=0
guarded()
{
	(
		set_guard 1 100
		exit "$1"
	)
}
# recorded COMMAND...: with a record of what must be in an order: writing to the disk,
# removing, unloading
recorded()
(
	true > calls
	sync()
	{
		echo "sync $*" >> calls
	}
	rm()
	{
		echo "rm $*" >> calls
		command rm "$@"
	}
	"$@"
)
in_order()
{
	grep -E '^(sync|rm|unload)' calls | sed "s|$state/||g; s|  *| |g" | paste -sd ,
}
crashed()
{
	(
		set_guard 1 100
		kill -9 "$BASHPID"
	)
}
failed=$state/failed-6.1.0-50-amd64
echo fi-rst > boot
guarded 1
tap_is "$(check_guard 1)" "" "a load that has ended is no crash"
crashed 2> /dev/null
tap_is "$(check_guard 1)" "" "the same boot is no crash"
echo second > boot
refused="version 1 was loaded and made trouble, or the machine went down soon after:\
 remove $failed to load it again"
tap_is "$(check_guard 1)" "$refused" "another boot is a crash"
tap_is "$(check_guard 1)" "$refused" "and is remembered"
rm "$failed"
echo first > boot
crashed 2> /dev/null
echo second > boot
guard=$(cd "$state" && ls)
tap_is "$(recorded check_guard 1)" "$refused" "another crash"
tap_is "$(in_order)" "sync ${failed##*/} $state,rm -f $guard" \
	"it is on the disk before the guard goes"
mkdir directory
echo "1 first 100" > "$state/$guard"
tap_is "$(
	failed_file() { echo "directory"; }
	check_guard 1 2> /dev/null)" "cannot write directory" "what cannot be remembered"
tap_ok "keeps its guard" rm "$state/$guard"
tap_is "$(check_guard 2)" "" "another version can be loaded"
rm "$failed"
mkdir "$failed"
tap_is "$(check_guard 1)" "cannot read $failed" "what is remembered cannot be read"
mv "$failed" "$state/pending-6.1.0-50-amd64.1"
tap_is "$(check_guard 1)" "cannot read $state/pending-6.1.0-50-amd64.1" "nor can a guard"
rmdir "$state/pending-6.1.0-50-amd64.1"
tap_is "$(check_guard 1)" "" "also this one, when the file is removed"
(
	set_guard 1 100
	kill "$BASHPID"
	command sleep 5
)
echo third > boot
tap_is "$(check_guard 1)" "" "a shutdown is no crash"

# A watcher that was killed, and what the journal has of that boot.
echo fi-rst > boot
crashed 2> /dev/null
seen_at 1050 > seen-first
echo second > boot
tap_is "$(check_guard 1)" "$refused" "a crash while it would have watched"
rm "$failed"
echo fi-rst > boot
crashed 2> /dev/null
seen_at 1101 > seen-first
echo second > boot
tap_is "$(check_guard 1)" "" "a crash after that"
tap_is "$(ls "$state")" "" "nothing is left of it"

# Two at once.
(
	set_guard 1 100
	guarded 0
	kill -9 "$BASHPID"
)
echo third > boot
tap_is "$(check_guard 1)" "$refused" "another load ends, and does not end the guard"
rm "$failed"

# What the unit does at a shutdown.
crashed 2> /dev/null
echo "1 another-boot 0" > "$state/pending-6.1.0-50-amd64.1"
stop=$(sed -n '/^ExecStop=/,$p' "$data/flowfd-livepatch-guard.service" | tr -d '\\\n' |
	sed "s/^[^']*'//; s/'$//; s/\\$\\$/\$/g; s|/var/lib/flowfd-livepatch|$state|
		s|/proc/sys/kernel/random/boot_id|boot|")
tap_ok "a shutdown" sh -c "$stop"
tap_is "$(cd "$state" && ls)" "pending-6.1.0-50-amd64.1" \
	"removes the guards of this boot, and no other"
tap_ok "there is nothing to remove" sh -c "$stop"
rm "$state"/*

# watch_with TAINT...: prints what the watcher does when the kernel has come to these flags
mkdir modules/flowfd_livepatch_1 sysfs/flowfd_livepatch_1
echo 1 > modules/flowfd_livepatch_1/version
watch_with()
{
	local bit
	echo $((1 << 12 | 1 << 4)) > taint
	mark
	for bit; do
		echo $(($(cat taint) | 1 << bit)) > taint
	done
	(
		set_guard 2 5000
		watch 2 10
	)
	echo "status $?"
}
# All but those of trouble: P, F, S, R, U, A, C, I, O, E, K, X, T, N.
tap_is "$(watch_with 0 1 2 3 6 8 10 11 12 13 15 16 17 18 4)" "the kernel is well after 10 s
status 0" "a kernel that is well"
tap_is "$(check_guard 1; check_guard 2)" "" "it can be loaded again"
for flag in B:5 D:7 W:9 L:14; do
	tap_is "$(watch_with "${flag#*:}" 2>&1)" \
		"the kernel is not well, it has new taint flags: ${flag%:*}
unloaded
status 1" "the flag ${flag%:*}"
	tap_is "$(check_guard 1)" "$refused" "what was loaded is not loaded again"
	rm "$failed"
done
tap_is "$(recorded watch_with 7 > /dev/null 2>&1; in_order | grep -o "sync failed.*" | sed "s,[0-9]*$,N,")" \
	"sync ${failed##*/} $state,unloaded,rm -f pending-6.1.0-50-amd64.N" \
	"trouble is on the disk before the unload"
rm "$failed"
# A flag that was set before.
again()
(
	echo $((1 << 9 | 1 << 7)) > taint
	echo 3 > warn_count
	echo 1 > oops_count
	mark
	pause()
	{
		sleep "$1"
		echo "$counted" > warn_count
		echo "$oopses" > oops_count
	}
	counted=$1
	oopses=$2
	watch 1 10 2>&1
)
tap_is "$(again 3 1)" "the kernel is well after 10 s" "flags that were set before"
tap_is "$(again 4 1)" "the kernel is not well, it has new taint flags: W again
unloaded" "another warning"
tap_is "$(again 5 2)" "the kernel is not well, it has new taint flags: D again W again
unloaded" "and another oops"
rm "$failed" warn_count oops_count
echo 0 > taint
echo 3 > warn_count
mark
tap_is "$(
	pause()
	{
		sleep "$1"
		echo 4 > warn_count
	}
	watch 1 10 2>&1)" "the kernel is well after 10 s" "a report that sets no flag"
tap_is "$(
	pause()
	{
		sleep "$1"
		echo 512 > taint
		echo 5 > warn_count
	}
	watch 1 10 2>&1)" "the kernel is not well, it has new taint flags: W
unloaded" "the first warning"
rm "$failed"
mark
echo 6 > warn_count
tap_is "$(judge 1 2>&1; ls "$state")" "" "another warning after a load that nobody watches"
mark
tap_is "$(
	(
		sleep()
		{
			echo 7 > warn_count
			kill "$BASHPID"
		}
		set_guard 1 5000
		watched=10
		watch 1 10
	) 2>&1; check_guard 1)" "stopped before the end of the watch
the kernel is not well, it has new taint flags: W again
$refused" "or just before a watch is stopped"
rm "$failed" warn_count
# Nobody reads what the watch says: the connection is lost, a log is full, a terminal stopped.
# unread COMMAND...: watches with the tool's own say(), as the command runs it
unread()
(
	eval "$(sed -n '/^say()/,/^}/p' "$data/flowfd-livepatch")"
	unload()
	{
		echo unloaded >> calls
	}
	true > calls
	echo 0 > taint
	mark
	echo 128 > taint
	set -e
	trap '' PIPE
	"$@"
)
full_log()
{
	watch 1 10 > /dev/full 2>&1
}
lost_reader()
{
	{ watch 1 10; } 2>&1 | true
}
full_pipe()
{
	mkfifo full
	exec 7<> full
	dd if=/dev/zero of=full bs=64k oflag=nonblock 2> /dev/null || true
	watch 1 10 > full 2>&1 &
	for _ in {1..100}; do
		[ ! -s calls ] || break
		command sleep 0.1
	done
	kill -9 $!
}
for reader in full_log lost_reader full_pipe; do
	unread $reader
	tap_is "$(cat calls) $(cut -d ' ' -f 1 "$failed")" "unloaded 1" "$reader: unloaded, and remembered"
	rm "$failed"
done
# The disk is what the kernel has trouble with. Nothing that waits for it keeps the output open.
tap_is "$(
	disk_patience=1
	sync()
	{
		[ "$1" != "$failed" ] || { command sleep 4; touch synced; }
	}
	watch_with 7 2>&1)" "cannot write $failed
the kernel is not well, it has new taint flags: D
unloaded
status 1" "an unload does not wait for a disk"
tap_ok "nor does who reads what it says" [ ! -e synced ]
rm -f "$failed"
# An unload that tasks keep from coming to an end, and one by somebody else.
tap_is "$(
	unload()
	{
		echo >> tries
		[ "$(wc -l < tries)" = 3 ] || die "it waited for a task"
		say unloaded
	}
	true > tries
	watch_with 7 2>&1)" "the kernel is not well, it has new taint flags: D
it waited for a task
it waited for a task
unloaded
status 1" "an unload is tried again"
tap_is "$(
	unload()
	{
		rmdir modules/flowfd_livepatch_1
		die "not loaded"
	}
	rm modules/flowfd_livepatch_1/version
	watch_with 7 2>&1)" "the kernel is not well, it has new taint flags: D
not loaded
status 1" "until nothing is loaded"
rm "$failed"
mkdir modules/flowfd_livepatch_1
echo 1 > modules/flowfd_livepatch_1/version

# A watcher that is stopped while it tries to unload.
tap_is "$(
	unload()
	{
		die "it waited for a task"
	}
	pause()
	{
		[ "$1" = 2 ] || kill "$BASHPID"
		sleep "$1"
	}
	watch_with 7 2>&1)" "the kernel is not well, it has new taint flags: D
it waited for a task
stopped before it was unloaded
status 1" "an unload that is stopped has failed"
tap_is "$(
	unload()
	{
		local watcher
		rmdir modules/flowfd_livepatch_1
		read -r _ _ _ watcher _ < "/proc/$BASHPID/stat"
		kill "$watcher"
	}
	rm modules/flowfd_livepatch_1/version
	watch_with 7 2>&1)" "the kernel is not well, it has new taint flags: D
status 1" "unless that was its end"
mkdir -p modules/flowfd_livepatch_1
echo 1 > modules/flowfd_livepatch_1/version
rm "$failed"

# A watcher that is stopped.
echo 0 > taint
mark
tap_is "$(
	(
		sleep()
		{
			kill "$BASHPID"
		}
		set_guard 1 5000
		watch 1 10
	)
	echo "status $?")" "stopped before the end of the watch
status 143" "a watch that is stopped is not a kernel that is well"
tap_is "$(ls "$state")" "" "nor a crash"
tap_is "$(
	(
		sleep()
		{
			echo 512 > taint
			kill "$BASHPID"
		}
		set_guard 1 5000
		watch 1 10
	) 2>&1
	echo "status $?")" "stopped before the end of the watch
the kernel is not well, it has new taint flags: W
status 143" "trouble just before that"
tap_is "$(check_guard 1)" "$refused" "is remembered"
rm "$failed"

# A watcher that is killed at once, after a load that may have taken long.
echo 0 > taint
mark
(
	set_guard 1 5000
	sleep()
	{
		kill -9 "$BASHPID"
	}
	watch 1 10
) 2> /dev/null
tap_is "$(cut -d ' ' -f 3 "$state"/pending-*)" "$(($(now) + 10))" \
	"the guard is for the time to watch"
rm "$state"/pending-*
(
	set_guard 1 5000
	sh -c "$stop"
	sleep()
	{
		kill -9 "$BASHPID"
	}
	watch 1 10
) 2> /dev/null
tap_is "$(ls "$state")" "" "a shutdown during the load ends the guard for good"
# The disk hangs, and the shutdown comes before it goes on.
(
	set_guard 1 5000
	disk_patience=0.1
	dd()
	{
		command sleep 1
		sh -c "$stop"
		command dd "$@"
		touch late
	}
	sleep()
	{
		kill -9 "$BASHPID"
	}
	watch 1 10 > output 2>&1
) 2> /dev/null
tap_is "$([ -e late ] || sed 's/[0-9]*$/N/' output)" "cannot write $state/pending-6.1.0-50-amd64.N" \
	"a watch does not wait for a disk"
until [ -e late ]; do
	command sleep 0.1
done
tap_is "$(ls "$state")" "" "nor is the guard made again when that goes on"
eval "$(declare -f sleep | sed '1s/sleep/pass/')"
tap_is "$(
	sleep()
	{
		pass 4
		[ "$(now)" -lt 1020 ] || echo 16 > taint
	}
	echo 1010.00 0 > uptime
	watch 1 11 2>&1)" "the kernel is not well, it has new taint flags: M
unloaded" "a clock that is set does not end a watch"
rm "$state"/failed-*
patience=60
true > tries
third_time()
{
	echo >> tries
	[ "$(wc -l < tries)" = 3 ]
}
tap_ok "a clock that is set does not end a wait" wait_for third_time
tap_is "$(watch_with 4 7 9 2>&1)" "the kernel is not well, it has new taint flags: D W
unloaded
status 1" "two flags"
tap_is "$(check_guard 2)" "" "what was not loaded can be"
rm "$failed"
echo 0 > taint
mark
echo 16 > taint
trouble
tap_is "$found" " M" "the flag M"

# A kernel that starts no programs any more, or does not tell how it is.
# without_programs TAINT: watches one that comes to these flags
without_programs()
(
	after=$1
	# shellcheck disable=SC2123
	PATH=/nothing
	pause()
	{
		real_pause 0.01
		echo "$after" > taint
	}
	unload()
	{
		echo unloaded
	}
	set -eu
	watch 1 3
)
echo 0 > taint
mark
tap_is "$(without_programs 0)" "the kernel is well after 3 s" \
	"a kernel that is well, and starts no programs"
tap_is "$(without_programs 128 2>&1)" "cannot write $failed
the kernel is not well, it has new taint flags: D
unloaded" "trouble in one"
rm -f "$failed"
echo 0 > taint
tap_is "$(
	pause()
	{
		rm taint
	}
	watch 1 10 2>&1)" "the kernel is not well, it has new taint flags: unknown
unloaded" "a kernel that does not tell how it is"
rm -f "$failed"
# pause() does not return at once.
start=${EPOCHREALTIME/.}
real_pause 0.2
tap_ok "a pause without a process" [ $((${EPOCHREALTIME/.} - start)) -ge 200000 ]

# full_disk COMMAND...: with a guard on a disk that is full since then: prints what the
# command says, how it ends, and what is on the disk after that
full_disk()
{
	local status
	echo 0 > taint
	mark
	mount -t tmpfs -o size=8k full "$state"
	(
		set -e
		unload()
		{
			clear_guards
			say unloaded
		}
		set_guard 1 5000
		cat /dev/zero > "$state/rest" 2> /dev/null || true
		"$@"
	) > output 2> errors
	status=$?
	grep -hv 'No space left' output errors | sed "s|$state/||; s/\.[0-9]*$/.N/"
	echo "status $status"
	(cd "$state" && rm rest && grep -rc '^1 boot-of-full [1-5][0-9]*$' . | sed 's/\.[0-9]*:/.N:/')
	umount "$state"
}
killed()
{
	sleep()
	{
		kill -9 "$BASHPID"
	}
	watch 1 10
}
not_well()
{
	echo 16 > taint
	watch 1 10
}
echo boot-of-full > boot
if unshare --mount mount -t tmpfs full "$state" 2> /dev/null; then
	tap_is "$(full_disk watch 1 10)" "the kernel is well after 10 s
status 0" "a disk that is full after the load"
	tap_is "$(full_disk killed 2> /dev/null)" "status 137
./pending-6.1.0-50-amd64.N:1" "the guard is written, which needs no room"
	tap_is "$(full_disk not_well)" "unloaded
the kernel is not well, it has new taint flags: M
status 1
./failed-6.1.0-50-amd64:1" "and remembers what made trouble"
	tap_is "$(
		mount -t tmpfs -o size=4k full "$state"
		cat /dev/zero > "$state/rest" 2> /dev/null
		set_guard 1 100 2> /dev/null || ls -A "$state"
		umount "$state")" "rest" "a guard that cannot be written leaves nothing"
else
	tap_skip "a disk that is full" "no mounts"
fi
rm -r modules/* sysfs/*

# status as JSON, of one in force, one in transition, and a vendor's
patch()
{
	mkdir -p "sysfs/$1/vmlinux/$4,1" "modules/$1"
	echo "$2" > "sysfs/$1/enabled"
	echo "$3" > "sysfs/$1/transition"
}
blockers()
{
	"$2" 12 "a \"task\"\\" "one two"
}
tap_is "$(status_json; echo "status $?")" '{"kernel": "6.1.0-50-amd64", "in_force": false, "replaced": false, "livepatches": [], "others": []}
status 3' "nothing is loaded"
patch vendor 1 0 other
mkdir modules/flowfd_livepatch_1
module_list=list
printf '%s 16384 0 - Live 0x0\n' vendor flowfd_livepatch_1 flowfd_livepatch_2 > list
tap_is "$(status_json)" '{"kernel": "6.1.0-50-amd64", "in_force": false, "replaced": true, "livepatches": [], "others": ["vendor"]}' "replaced"
patch flowfd_livepatch_1 1 0 one
mkdir "sysfs/flowfd_livepatch_1/vmlinux/two,1"
current_version 6.1 > modules/flowfd_livepatch_1/version
echo 1 > modules/flowfd_livepatch_1/retire
patch flowfd_livepatch_2 1 1 one
status_json > json
tap_is "$? $(python3 - <<'END2'
import json
status = json.load(open("json"))
first, second = status["livepatches"]
print(status["in_force"], status["others"], first["state"], first["functions"],
      first["retired"], first["outdated"], first["waits_for"], first["overridden"])
print(second["state"], second["outdated"], second["retired"], second["waits_for"])
END2
)" "1 False ['vendor'] in force ['one,1', 'two,1'] True False [] []
coming into force True False [{'task': 12, 'name': 'a \"task\"\\\\', 'stack': 'one two'}]" \
	"one in force, one in transition"
mv sysfs/flowfd_livepatch_2 away
mkdir sysfs/vendor/vmlinux/two,1
current=$(current_version 6.1)
tap_is "$(status_json | grep -o '"in_force": false.*"state": "[^"]*"\|"overridden": [^ ]*')" \
	"\"in_force\": false, \"replaced\": false, \"livepatches\": [{\"name\": \
\"flowfd_livepatch_1\", \"version\": \"$current\", \"state\": \"in force in part\"
\"overridden\": [\"two,1\"]," "a function is another's"
tap_done
