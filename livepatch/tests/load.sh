#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# load.sh: load and unload, with files in place of the kernel's. Prints TAP.
# shellcheck disable=SC2034,SC2154,SC2317 # variables of and for the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
# shellcheck source=livepatch/tests/functions.sh
. livepatch/tests/functions.sh
patience=1

# A lock that users cannot hold; they can hold that of a file that they can read.
chmod 711 .
private=$PWD/private
as_user()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@" 2> /dev/null
}
touch readable
units=$(grep -l '^\s*ExecStart=.*load' "$data"/*.service "$data/ansible/flowfd/files/trial.sh")
tap_is "$(xargs grep -LE 'TimeoutStopSec=(5min|infinity)' <<< "$units")" "" \
	"units give a load the time to be taken back"
tap_ok "the lock" lock
tap_ok "users can lock what they can open" as_user flock readable true
tap_ok "they cannot open the lock" eval ! as_user cat private/lock
chmod 755 private
(lock)
tap_is "$(stat -c %a private)" 700 "nor if the directory was open to them"
(
	lock
	touch locked
	sleep 1
) &
until [ -e locked ]; do
	sleep 0.1
done
tap_ok "another one waits for the lock" lock
wait
(
	lock
	touch again
	sleep 5
) &
until [ -e again ]; do
	sleep 0.1
done
tap_is "$(lock)" "another load or unload is running" "but not for ever"
kill $!
wait 2> /dev/null
(
	lock
	disk_patience=0.1
	in_time sleep 5
)
tap_ok "what waits for a disk does not have the lock" lock

# Unloads of two, one of which does not end.
need_root()
{
	:
}
need_livepatching()
{
	:
}
unload_one()
{
	[ "$1" != "$stuck" ] || die "$1 is stuck"
	rmdir "modules/$1"
}
modules=modules
mkdir -p modules/flowfd_livepatch_{1,2} state
guard=state/pending-$(uname -r).1
touch "$guard"
stuck=flowfd_livepatch_1
tap_is "$(unload; echo 0)" "flowfd_livepatch_1 is stuck" "an unload that fails"
tap_is "$(ls modules)" "flowfd_livepatch_1" "the other one is unloaded"
tap_ok "until all are, a crash counts" [ -e "$guard" ]
stuck=
tap_is "$(unload)" "unloaded" "an unload"
tap_ok "then, it does not" [ ! -e "$guard" ]
tap_is "$(unload; echo 0)" "not loaded" "nothing is loaded"
mkdir modules/flowfd_livepatch_1
tap_is "$(
	set -e
	rm()
	{
		false
	}
	unload 2>&1)" "warning: a crash will be taken for its fault: remove $state/pending-$(uname -r).*
unloaded" "an unload where the guards cannot be removed"

# Modules with fields, and a kernel that inserts them at once.
uname()
{
	echo 6.1.0-48-amd64
}
running_build_id()
{
	echo 1234
}
echo 'const char info[] __attribute__((section(".modinfo"))) = "license=GPL";' > info.c
# build DIR NUMBER KERNEL: a module
build()
{
	mkdir -p "$1"
	gcc -c -o "$1/$file.new" -x c info.c
	python3 "$data/builder/add-modinfo.py" "$1/$file.new" "name=flowfd_livepatch_$2" \
		"version=0.2.0-$2" vermagic=6.1.0-48-amd64 "flowfd_kernel=$3"
	echo 1234 > "$1/build-id"
	mv "$1/$file.new" "$1/$file"
}
insmod()
{
	local name
	name=$(field "$1" name)
	mkdir -p "modules/$name" "sysfs/$name"
	echo 1 > "sysfs/$name/enabled"
	echo 0 > "sysfs/$name/transition"
	echo "inserted $name"
}
unload_one()
{
	rm -r "modules/$1" "sysfs/$1"
	echo "unloaded $1"
}
is_outdated()
{
	false
}
sysfs=sysfs
module_list=/dev/null
off_file=off
cpuinfo=cpuinfo
echo "flags : fpu vme" > cpuinfo
mkdir -p sysfs
built=$state/6.1.0-48-amd64
# while_locked COMMAND...: loads, and runs the command while that waits for the lock
while_locked()
{
	(
		lock
		touch held
		while [ -e held ]; do
			sleep 0.1
		done
	) &
	until [ -e held ]; do
		sleep 0.1
	done
	load "" "" > output 2>&1 &
	sleep 0.5
	"$@"
	rm held
	wait $!
	cat output
}
patience=10
build "$built" 1 1234
tap_is "$(load "" "")" "inserted flowfd_livepatch_1
in force" "a load"
tap_is "$(ls private)" "lock" "no copy is left"
rm -r sysfs/* modules/*
build "$built" 1 5678
tap_is "$(load "" "")" "$built/$file is for another build of 6.1.0-48-amd64 (build id 5678; \
this kernel's is 1234): build again" "the build ID in the module counts"
tap_is "$(ls private)" "lock" "no copy is left of what is refused"
build "$built" 1 1234
tap_is "$(while_locked build "$built" 2 5678)" "$built/$file is for another build of \
6.1.0-48-amd64 (build id 5678; this kernel's is 1234): build again" \
	"a module that comes while load waits is checked"
build "$built" 1 1234
tap_is "$(while_locked build "$built" 2 1234)" "inserted flowfd_livepatch_2
in force" "and loaded"
rm -r sysfs/* modules/*
echo "flags : fpu ibt vme" > cpuinfo
tap_is "$(load "" "" 2>&1)" "warning: this processor has IBT, with which the livepatch was \
never tried
inserted flowfd_livepatch_2
in force" "a processor with IBT"
echo "flags : fpu vme" > cpuinfo
rm -r sysfs/* modules/*
tap_is "$(while_locked touch off)" "switched off by off" "switched off while load waits"
rm off
# As late as it can be.
check_others()
{
	touch off
}
tap_is "$(load "" "")" "switched off by off" "or just before the kernel has it"
rm off
check_others()
{
	build "$built" 1 5678
}
tap_is "$(load "" "")" "inserted flowfd_livepatch_2
in force" "what was checked is loaded"
unset -f check_others
# shellcheck source-path=SCRIPTDIR source=../load.sh
. "$data/load.sh"
private=$PWD/private
cpuinfo=cpuinfo

# A build that takes over from one that does not unload, and what comes after that.
watch()
{
	# The terminal is lost.
	kill -HUP "$BASHPID"
	say "watched for $2 s"
}
systemd-notify()
{
	echo "$*" >> told
	[ ! -e busy ]
}
check_guard()
{
	:
}
mkdir bin
cat > bin/systemctl <<TEXT
#!/bin/sh
echo "systemctl \$*" >> $PWD/told
[ "\$2" != start ] || [ ! -e $PWD/going_down ]
TEXT
chmod +x bin/systemctl
PATH=$PWD/bin:$PATH
systemd=$PWD
taint_file=taint
echo 0 > taint
boot_id=boot
echo boot > boot
unload_one()
{
	die "$1 is stuck"
}
build "$built" 3 1234
tap_is "$(NOTIFY_SOCKET=socket load "" 5 2>&1; echo $?)" "inserted flowfd_livepatch_3
flowfd_livepatch_2 is stuck
warning: flowfd_livepatch_2 stays loaded
in force
watched for 5 s
0" "a build that takes over is watched"
tap_is "$(tail -n 1 told)" "--ready" "systemd is told"
rm -r sysfs/* modules/*
touch busy
tap_is "$(
	set -e
	NOTIFY_SOCKET=socket load "" 5 2>&1 | tail -n 3)" "in force
warning: systemd was not told that the livepatch is in force
watched for 5 s" "also where systemd does not answer"
rm busy
# A pipe that is full, or a terminal that was stopped, after the kernel has the module.
rm -r sysfs/* modules/*
mkfifo full
exec 7<> full
(
	eval "$(sed -n '/^say()/,/^}/p' "$data/flowfd-livepatch")"
	eval "$(declare -f insmod | sed '1s/insmod/insert_at_once/')"
	insmod()
	{
		insert_at_once "$1"
		dd if=/dev/zero of=full bs=64k oflag=nonblock 2> /dev/null || true
	}
	watch()
	{
		touch watched
	}
	load "" 5 > full 2>&1
) &
tap_ok "the watch begins when nobody reads" wait_for [ -e watched ]
kill -9 $! 2> /dev/null
wait
exec 7<&-
rm told
touch "$built/fixed"
tap_is "$(NOTIFY_SOCKET=socket load "" 5; cat told)" "already fixed in this kernel
--ready" "systemd is told where there is nothing to do"
rm -r "$built/fixed" sysfs/* modules/*

# A signal before the livepatch is in force, or before systemd knows. The kernel removes a
# livepatch a moment after it was told to.
kernel()
{
	local enabled
	while [ ! -e stop ]; do
		sleep 0.3
		for enabled in sysfs/*/enabled; do
			[ "$(cat "$enabled" 2> /dev/null)" != 0 ] || rm -r "${enabled%/*}"
		done
	done
}
rmmod()
{
	[ ! -d "sysfs/$1" ] && rm -r "modules/$1"
}
eval "$(declare -f insmod | sed '1s/insmod/insert_at_once/')"
# signalled SIGNAL: loads, sends the signal when the module is there, and prints the rest
signalled()
{
	load "" 5 > output 2>&1 &
	wait_for [ -e "modules/flowfd_livepatch_3/$2" ]
	kill "-$1" $!
	wait $!
	echo "status $?"
	cat output
	find sysfs modules "$state" -mindepth 1 -maxdepth 1 -printf '%f\n'
}
insmod()
{
	insert_at_once "$1"
	echo 1 > sysfs/flowfd_livepatch_3/transition
	touch modules/flowfd_livepatch_3/there
}
kernel 2> /dev/null &
for signal in TERM INT HUP QUIT; do
	tap_is "$(signalled $signal there)" "status 143
inserted flowfd_livepatch_3
stopped, and taken back
6.1.0-48-amd64" "SIG$signal during the load"
done
insmod()
{
	insert_at_once "$1"
}
overridden()
{
	touch "modules/$1/in_force"
	sleep 1
}
tap_is "$(signalled TERM in_force | head -n 4)" "status 143
inserted flowfd_livepatch_3
in force
stopped, and taken back" "SIGTERM before systemd knows that it is in force"
touch stop
wait

# A signal while the older build is unloaded, which goes to all processes of the load. The
# kernel has one transition at a time, and refuses another. "held" keeps the unload of the
# older build from coming to an end, "stuck" any transition.
# shellcheck source-path=SCRIPTDIR source=../load.sh
. "$data/load.sh"
private=$PWD/private
systemd=$PWD
cpuinfo=cpuinfo
kernel()
{
	local path
	while [ ! -e stop ]; do
		sleep 0.05
		for path in sysfs/*; do
			case $(cat "$path/enabled" "$path/transition" | xargs) in
			"0 0")
				if all_settled; then
					echo 1 > "$path/transition"
				else
					echo 1 > "$path/enabled"
				fi
				;;
			"0 1")
				[ -e stuck ] || { [ -e held ] && [[ $path = *_2 ]]; } ||
					rm -r "$path"
				;;
			"1 1") [ -e stuck ] || [ -e blocked ] || echo 0 > "$path/transition" ;;
			esac
		done
	done
}
blockers()
{
	echo "  somebody keeps $1"
}
overridden()
{
	:
}
# interrupted SIGNAL COMMAND...: loads over an older build, sends the signal when the command
# succeeds, and prints the rest
interrupted()
{
	local signal=$1
	shift
	mkdir -p {sysfs,modules}/flowfd_livepatch_2
	echo 1 > sysfs/flowfd_livepatch_2/enabled
	echo 0 > sysfs/flowfd_livepatch_2/transition
	set -m
	load "" "" > output 2>&1 &
	set +m
	# The load may be slow to get there, on a machine that is busy.
	patience=60 wait_for "$@"
	kill "-$signal" -- "-$!"
	wait $!
	echo "status $?"
	grep -vE 'Terminated|Interrupted system call' output
	find sysfs -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}
rm stop
kernel 2> /dev/null &
is_unloading()
{
	grep -qsx 1 sysfs/flowfd_livepatch_2/transition
}
# A crash after that is no fault of the older build, whose guard a watch may have left.
older_is_loaded()
{
	mkdir -p {sysfs,modules}/flowfd_livepatch_2
	echo 1 > sysfs/flowfd_livepatch_2/enabled
	echo 0 > sysfs/flowfd_livepatch_2/transition
	echo 0.2.0-2 > modules/flowfd_livepatch_2/version
	echo "0.2.0-2 boot 300" > "$state/pending-6.1.0-48-amd64.1"
}
older_is_loaded
echo "0.2.0-20 boot 300" > "$state/pending-6.1.0-48-amd64.2"
tap_is "$(load "" ""; ls "$state")" "inserted flowfd_livepatch_3
in force
6.1.0-48-amd64
pending-6.1.0-48-amd64.2" "the older build is unloaded, and its guard goes"
rm -r sysfs/* modules/*
older_is_loaded
tap_is "$(
	set -e
	rm()
	{
		case $2 in
		*/pending-*.1) flock -n private/lock touch unlocked && false ;;
		*) command rm "$@" ;;
		esac
	}
	load "" 5 2>&1)" "inserted flowfd_livepatch_3
in force
warning: a crash will be taken for the fault of version 0.2.0-2: remove \
$state/pending-6.1.0-48-amd64.*
watched for 5 s" "one whose guard cannot be removed"
tap_ok "others may load and unload meanwhile" [ -e unlocked ]
rm -r sysfs/* modules/* "$state"/pending-*
touch held
tap_is "$(interrupted TERM is_unloading)" "status 143
inserted flowfd_livepatch_3
stopped, and taken back
flowfd_livepatch_2" "SIGTERM while the older build is unloaded: that stays"
patience=2
touch stuck
tap_is "$(interrupted TERM is_unloading)" "status 1
inserted flowfd_livepatch_3
stopped, but not taken back: the kernel goes on, and until that ends no livepatch can be \
loaded or unloaded. Kill what it waits for:
  somebody keeps flowfd_livepatch_2
flowfd_livepatch_2
flowfd_livepatch_3" "it ends in no direction: what it waits for"
rm held stuck
patience=10
wait_for all_settled
rm -r sysfs/* modules/*
# As while the older build waits for tasks that hold a mutex of epoll.
mkdir -p modules/flowfd_livepatch_2
mkfifo modules/flowfd_livepatch_2/retire
is_retiring()
{
	in_force flowfd_livepatch_3 && sleep 0.5
}
{
	sleep 4
	timeout 1 cat modules/flowfd_livepatch_2/retire
} > /dev/null 2>&1 &
tap_is "$(interrupted INT is_retiring)" "status 143
inserted flowfd_livepatch_3
stopped, and taken back
flowfd_livepatch_2" "Ctrl-C before the unload of the older build: that stays"
rm -r sysfs/* modules/*
mkdir -p {sysfs,modules}/{flowfd_livepatch_2,vendor}
echo 1 | tee sysfs/{flowfd_livepatch_2,vendor}/enabled > sysfs/vendor/transition
echo 0 > sysfs/flowfd_livepatch_2/transition
touch stuck
(
	sleep 0.5
	rm stuck
) &
tap_is "$(unload)" "unloaded" "an unload waits for another livepatch's transition"
rm -r sysfs/* modules/*

# Loads that fail: taken back, or ending in neither direction; in a kernel that is well, or
# not.
patience=2
# failing TAINT: loads with a guard; the kernel has these flags after that. Prints what is
# remembered and guarded.
failing()
{
	insmod()
	{
		insert_at_once "$1"
		echo 1 > sysfs/flowfd_livepatch_3/transition
		echo "$taint_after" > taint
	}
	echo 0 > taint
	taint_after=$1
	(load "" 5) > output 2>&1
	echo "status $?"
	(cd "$state" && grep -H . failed-* pending-*) 2> /dev/null |
		sed -E 's/\.[0-9]*:/:/; s/ [0-9]+$//'
}
touch blocked
tap_is "$(failing 0)" "status 1" "a load that is taken back, in a kernel that is well"
tap_is "$(tail -n 1 told)" "systemctl -q start flowfd-livepatch-guard" \
	"a shutdown from then on is no crash"
touch going_down
tap_is "$(failing 0)" "status 1" "a load during a shutdown"
tap_is "$(cat output)" "flowfd-livepatch-guard.service does not start: is the system shut \
down?" "is refused"
rm going_down
tap_is "$(
	sync()
	{
		touch going_down
	}
	failing 0; ls modules)" "status 1" "a shutdown while the guard is written"
tap_is "$(cat output)" "flowfd-livepatch-guard.service does not start: is the system shut \
down?" "is noticed, and leaves no guard"
rm going_down
tap_is "$(failing 512)" "status 1
failed-6.1.0-48-amd64:0.2.0-3 boot" "one in a kernel that is not well"
tap_is "$(sed -n '$p' output)" "the kernel is not well, it has new taint flags: W" "and why"
rm blocked "$state"/failed-*
tap_is "$(
	insmod()
	{
		insert_at_once "$1"
		loader=$BASHPID
		echo 512 > taint
	}
	# The signal comes while the load is judged.
	sync()
	{
		kill "$loader"
	}
	echo 0 > taint
	exec 2>&1
	load "" "")" "inserted flowfd_livepatch_3
in force
the kernel is not well, it has new taint flags: W" "a load without a watch is judged, too"
tap_is "$(cd "$state" && cat failed-*)" "0.2.0-3 boot" "and remembered"
rm -r "$state"/failed-* sysfs/* modules/*
touch stuck
tap_is "$(failing 0)" "status 1
pending-6.1.0-48-amd64:0.2.0-3 boot" "new code still runs: the guard stays"
rm stuck "$state"/pending-*
wait_for is_gone flowfd_livepatch_3
touch stop
wait
tap_done
