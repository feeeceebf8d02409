#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# health.sh: the kill switch, loads after a crash, trouble in the kernel's log, and status
# as JSON: functions of flowfd-livepatch, without a kernel. Prints TAP.
# shellcheck disable=SC2034,SC2317 # variables of the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
top=$PWD
cd "$(mktemp -d)" || exit
data=$top/livepatch
state=$PWD/state
say()
{
	echo "$@"
}
die()
{
	say "$@"
	exit 1
}
# shellcheck source-path=SCRIPTDIR source=../built-module.sh
. "$top/livepatch/built-module.sh"
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. "$top/livepatch/loaded-livepatch.sh"
# shellcheck source-path=SCRIPTDIR source=../status-json.sh
. "$top/livepatch/status-json.sh"
# shellcheck source-path=SCRIPTDIR source=../health.sh
. "$top/livepatch/health.sh"
cmdline=cmdline
off_file=off
taint_file=taint
boot_id=boot
before_file=before
sysfs=sysfs
modules=modules
mkdir sysfs modules

uname()
{
	echo 6.1.0-50-amd64
}
dmesg()
{
	cat log
}
unload()
{
	say unloaded
}
sleep()
{
	:
}

echo 'root=/dev/vda flowfd_livepatch=office' > cmdline
tap_is "$(check_switch)" "" "not switched off"
echo 'root=/dev/vda flowfd_livepatch=off quiet' > cmdline
tap_is "$(check_switch)" "switched off by the kernel parameter flowfd_livepatch=off" \
	"switched off at boot"
true > cmdline
touch off
tap_is "$(check_switch)" "switched off by off" "switched off by a file"

# A process that guards a load, and ends with status $1, or is killed.
guarded()
{
	(
		set_guard 1
		exit "$1"
	)
}
crashed()
{
	(
		set_guard 1
		kill -9 "$BASHPID"
	)
}
echo first > boot
guarded 1
tap_is "$(check_guard 1)" "" "a load that failed is no crash"
crashed 2> /dev/null
tap_is "$(check_guard 1)" "" "the same boot is no crash"
echo second > boot
refused="version 1 was loaded and made trouble, or the machine went down soon after:\
 remove $state/failed-6.1.0-50-amd64 to load it again"
tap_is "$(check_guard 1)" "$refused" "another boot is a crash"
tap_is "$(check_guard 1)" "$refused" "and is remembered"
tap_is "$(check_guard 2)" "" "another version can be loaded"
rm "$state/failed-6.1.0-50-amd64"
tap_is "$(check_guard 1)" "" "also this one, when the file is removed"
(
	set_guard 1
	kill "$BASHPID"
	command sleep 5
)
echo third > boot
tap_is "$(check_guard 1)" "" "a shutdown is no crash"

# watch_with LOG TAINT: prints what the watcher does when the kernel has come to this
watch_with()
{
	printf '%s\n' "BUG: old" "flowfd-livepatch: loading" "$1" > log
	echo 4096 > before
	echo "$2" > taint
	(
		set_guard 1
		watch 1
	)
	echo "status $?"
}
tap_is "$(watch_with "livepatch: enabling" $((4096 | 1 << 15 | 1 << 13)))" \
	"the kernel is well after 1 s
status 0" "a kernel that is well"
tap_is "$(check_guard 1)" "" "it can be loaded again"
tap_is "$(watch_with "INFO: task a:1 blocked for more than 120 seconds." 4096 2>&1)" \
	"the kernel is not well:
INFO: task a:1 blocked for more than 120 seconds.
unloaded
status 1" "a hung task"
tap_is "$(check_guard 1)" "$refused" "it is not loaded again"
rm "$state/failed-6.1.0-50-amd64"
tap_is "$(watch_with "" $((4096 | 1 << 9)) 2>&1)" "the kernel is not well:
the kernel has new taint flags: 512
unloaded
status 1" "a taint flag"
printf '%s\n' "BUG: x" > log
cp taint before
tap_is "$(trouble)" "BUG: x" "a log without the mark counts as a whole"

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
      first["retired"], first["outdated"], first["waits_for"])
print(second["state"], second["outdated"], second["retired"], second["waits_for"])
END2
)" "1 False ['vendor'] in force ['one,1', 'two,1'] True False []
coming into force True False [{'task': 12, 'name': 'a \"task\"\\\\', 'stack': 'one two'}]" \
	"one in force, one in transition"
tap_done
