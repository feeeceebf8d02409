#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# load.sh: load, unload and status, with files in place of the kernel's. Prints TAP.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154,SC2317 # variables of and for the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
# shellcheck source=livepatch/tests/functions.sh
. livepatch/tests/functions.sh
patience=2

# A lock that users cannot hold; they can hold that of a file that they can read.
chmod 711 .
as_user()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@" 2> /dev/null
}
touch readable
(lock)
tap_ok "users can lock what they can open" as_user flock readable true
tap_ok "they cannot open the lock" eval ! as_user flock private/lock true
(
	lock
	touch locked
	sleep 20
) &
wait_for [ -e locked ]
tap_is "$(patience=0; lock)" "another load or unload is running" \
	"loads exclude each other"
kill $!
wait 2> /dev/null

# A kernel that removes a livepatch when it is told to, and refuses that during another
# transition. While "held" is there, no transition ends.
kernel()
{
	local path held
	while sleep 0.05; do
		# Before the state: what is held while that is read stays.
		held=$(ls held 2> /dev/null)
		for path in sysfs/flowfd*; do
			case $(cat "$path"/{enabled,transition} 2> /dev/null | xargs) in
			"0 0") echo 1 > "$path/transition" ;;
			"0 1") [ "$held" ] || rm -r "$path" ;;
			"1 1") [ "$held" ] || echo 0 > "$path/transition" ;;
			esac
		done
	done
}
insmod()
{
	livepatch "$(field "$1" name)" 1 1 vmlinux/{ours,both},1
	echo "inserted $(field "$1" version)"
}
rmmod()
{
	[ ! -d "sysfs/$1" ] && rm -r "modules/$1"
}
# A task in the old code, and another whose name has control characters.
mkdir -p proc/{11,12}/task/1
echo 0 | tee proc/{11,12}/task/1/patch_state > zero
printf 'a\e]0;x\a\nb c' > proc/12/task/1/comm
echo stuck > proc/11/task/1/comm
printf '[<0>] userfaultfd_read+0x1/0x2\n[<0>] vfs_read+0x1\n' > proc/11/task/1/stack
kernel > /dev/null 2>&1 &
kernel=$!
trap 'kill $kernel' EXIT

built=$state/$running
mine=flowfd_livepatch_${current#*-}
tap_is "$(load)" "there is no module for $running: run 'flowfd-livepatch build --kernel $running', \
or install flowfd-livepatch-$running" "no module"
module "$built" 1234 "$current"
patience=10
tap_is "$( (load); ls private)" "inserted $current
in force
lock" "a load, which leaves no copy"
tap_is "$(load)" "in force" "a second one"
tap_is "$(unload; ls modules)" "unloaded" "an unload"
tap_is "$(unload)" "not loaded" "nothing is loaded"
module "$built" other "$current"
tap_is "$(load)" "$built/$file is for another build of $running: build again" "another build"
sed -i "s/vermagic=$running/vermagic=6.1.0-51-amd64/" "$built/$file"
tap_is "$(load)" "$built/$file is for kernel 6.1.0-51-amd64; this kernel is $running" \
	"another kernel"
module "$built" 1234 "$current"
# An upgrade while it waits for the lock, and what comes after the checks.
sed '/^lock()/,/^}/!d; s/^{/{\n\tmodule "$built" other "$current"/' "$data/load.sh" > late.sh
# shellcheck source=/dev/null
tap_is "$(. ./late.sh; load)" "$built/$file is for another build of $running: build again" \
	"a module that comes while load waits is checked"
module "$built" 1234 "$current"
tap_is "$(
	eval "$(declare -f check_others | sed '1s/check_others/real_check/')"
	check_others()
	{
		module "$built" other 0.2.0-0
	}
	load)" "inserted $current
in force" "what was checked is inserted"

# A newer build takes over; one that was built from older patches is loaded with a warning.
module "$built" 1234 0.2.0-0
tap_is "$(load 2>&1; echo sysfs/* modules/*)" \
	"warning: $built/$file is outdated: build again
inserted 0.2.0-0
in force
sysfs/flowfd_livepatch_0 modules/flowfd_livepatch_0" "one build takes over from another"
livepatch vendor 1 0 vmlinux/both,1
module "$built" 1234 "$current"
tap_is "$(load)" "the livepatch vendor patches both, too: unload that first" \
	"another livepatch has the function"
rm -r sysfs/vendor modules/vendor
livepatch vendor 1 0 vmlinux/bothers,1 module/both,1
tap_is "$(load)" "inserted $current
in force" "or other functions, or one of a module, of the same name"

# Transitions that do not end.
(unload) > /dev/null
touch held
patience=1
tap_is "$(load 2>&1)" "inserted $current
neither in force nor taken back, and until that ends no livepatch can be loaded or unloaded. \
Kill what it waits for:" "a load that ends in no direction"
tap_is "$(status)" "being unloaded
  $mine, version $current
  patches both,1
  patches ours,1
module: $built/$file, version $current, fixes some
next boot, of $running: no: 'systemctl enable flowfd-livepatch' has it loaded at boot" \
	"status says so"
tap_is "$(unload)" "not unloaded yet, and until that ends no livepatch can be loaded or \
unloaded. Kill what it waits for:" "an unload after that does not put it in force"
rm held
patience=20
wait_for is_gone "$mine"
rmmod "$mine"
tap_is "$(load | tail -n 1)" "in force" "another load"
for ((i = 20; i < 41; i++)); do
	mkdir -p "proc/$i/task/1"
	echo 0 > "proc/$i/task/1/patch_state"
done
touch held
tap_is "$(echo 1 > "sysfs/$mine/transition"; blockers | sed -n '1,2p; $p')" \
	"  waits for 1 stuck, in userfaultfd_read vfs_read
  waits for 1 a?]0;x??b c
  and for 3 more" "those it waits for, of which very many are counted"
rm -r held proc/[2-4]?
wait_for in_force "$mine"

# Crashes: two in a row, of one version.
mkdir -p systemd bin
cat > bin/systemctl <<TEXT
#!/bin/sh
echo "\$*" >> $PWD/told
case \$* in
*is-enabled*) [ -e $PWD/enabled ] ;;
*is-active*) [ ! -e $PWD/shutdown ] ;;
esac
TEXT
chmod +x bin/systemctl
PATH=$PWD/bin:$PATH
(unload) > /dev/null
tap_is "$(load; cat "$memory")" "inserted $current
in force
$current boot-1" "a load leaves a line"
tap_is "$(grep -c 'restart flowfd-livepatch-guard' told)" 1 "and starts the unit that removes it"
(unload) > /dev/null
tap_is "$(tail -n 1 told)" "-q stop flowfd-livepatch-guard" "an unload stops that"
: > told
tap_is "$(
	insmod()
	{
		false
	}
	(load)
	tail -n 1 told)" "the kernel refused the module: see dmesg
-q stop flowfd-livepatch-guard" "and so does a load that the kernel refuses"
tap_is "$(crashes=told/crashes && load 2>&1 | tail -n 1)" "cannot write told/crashes-$running" \
	"no load without it"
rm -f "$memory"
echo "$current boot-0" > "$memory"
touch shutdown
tap_is "$( (load); cat "$memory")" "not loaded: flowfd-livepatch-guard.service was stopped, as by a shutdown
$current boot-0" "a shutdown that has stopped it leaves no line"
rm shutdown
echo "$current boot-1" > "$memory"
echo boot-2 > boot_id
tap_is "$(load | tail -n 1)" "in force" "one crash, as of a power failure, does not count"
(unload) > /dev/null
echo boot-3 > boot_id
tap_is "$(load)" "the machine went down twice in a row soon after version $current was loaded: \
remove $memory to load it again" "two crashes do"
tap_is "$(status | sed -n 1p)" "not in force: the machine went down twice in a row soon after \
version $current was loaded: remove $memory to load it again" "status gives the reason"
touch enabled
tap_is "$(status | tail -n 1)" "next boot, of $running: the machine went down twice in a row \
soon after version $current was loaded: remove $memory to load it again" "also for the next boot"
guard=$data/flowfd-livepatch-guard.service
stop_post=$(sed -n '/^ExecStopPost/,$p' "$guard" | tr -d '\n' |
	sed "s/^[^']*'//; s/'\$//; s/\\\\\\t*//g; s/\\\$\\\$/\$/g; s/%v/$running/g
		s|/var/lib/flowfd-livepatch|memory|; s|/proc/[a-z/_]*|$boot_id|")
echo "$current boot-3" >> "$memory"
EXIT_STATUS=TERM sh -c "$stop_post"
tap_is "$(cut -d ' ' -f 2 "$memory" | xargs)" "boot-1 boot-2" \
	"a shutdown removes the line of its boot"
EXIT_STATUS=0 sh -c "$stop_post"
tap_ok "five minutes remove all" [ ! -e "$memory" ]

# status
tap_is "$(status; echo $?; status --json > /dev/null; echo $?)" "not in force: not loaded: \
'flowfd-livepatch load' loads it
module: $built/$file, version $current, fixes some
next boot, of $running: yes
3
3" "status of a livepatch that is not loaded"
echo 3 | tee counts/{warn,oops}_count > six
tap_is "$(load)" "inserted $current
in force" "a load after that"
echo 5 > counts/warn_count
tap_is "$(status; echo $?)" "in force
  $mine, version $current
  patches both,1
  patches ours,1
  warnings of the kernel since the load: 2
module: $built/$file, version $current, fixes some
next boot, of $running: yes
0" "status of one that is, in a kernel that has warned"
tap_is "$(status --json)" "{\"kernel\": \"$running\", \"state\": \"in force\", \"why\": \"\", \
\"name\": \"$mine\", \"version\": \"$current\", \"module\": \"$current\", \"next_kernel\": \
\"$running\", \"next_boot\": \"yes\", \"outdated\": false, \"warnings\": 2}" "as JSON"
livepatch vendor 1 0 vmlinux/ours,1
printf '%s 16384 1 - Live 0x0 (OK)\n' vendor "$mine" other > proc/modules
tap_is "$(status > said; echo $?; status --json > /dev/null; echo $?; head -n 5 said)" "1
1
in force in part
  $mine, version $current
  patches both,1
  patches ours,1
  ours,1 is that of vendor, which came later" "a later livepatch has a function"
rm -r sysfs/vendor
touch held
livepatch flowfd_livepatch_0 0 1
tap_is "$(set -o pipefail; status --json | grep -o '"state": "[^"]*"'; echo $?)" "\"state\": \
\"being unloaded\"
1" "an older build that does not go"
rm -r held {sysfs,modules}/flowfd_livepatch_0 "sysfs/$mine"
tap_is "$(status | sed -n 1p)" "not in force: another livepatch has replaced it, or it was \
unloaded without this tool: 'flowfd-livepatch load' loads it again" "or another one has"
tap_is "$(load | tail -n 1)" "in force" "load loads it again"
(unload) > /dev/null
# A module that cannot be removed, and a livepatch that cannot be disabled.
(load) > /dev/null
tap_is "$(
	# Whole seconds: one can end after a moment.
	patience=2
	rmmod()
	{
		echo "rmmod: not permitted" >&2
		false
	}
	unload)" "the module stays: rmmod: not permitted" "the reason for a module that stays"
tap_is "$(load | tail -n 1)" "in force" "load"
tap_is "$(
	patience=1
	is_gone()
	{
		false
	}
	trap '' XFSZ
	ulimit -f 0
	unload)" "the kernel does not unload $mine: File too large" "a livepatch that stays"
echo 1 > "sysfs/$mine/enabled"
tap_is "$(
	patience=1 over=
	disable()
	{
		[ "$over" ] && echo 0 > "$sysfs/$1/enabled"
	}
	all_settled()
	{
		over=1 patience=20
	}
	unload)" "unloaded" "after another transition that ends just then"
# The next boot, of the newest kernel.
touch boot/vmlinuz-6.12.{9,10,9x}+deb13-amd64
next=6.12.10+deb13-amd64
tap_is "$(status | tail -n 1)" "next boot, of $next: no: there is no module for it: run \
'flowfd-livepatch build --kernel $next', or install flowfd-livepatch-$next" "a newer kernel"
module "$state/$next" 99 0.2.0-0 6.12.10-1
tap_is "$(status | tail -n 1)" "next boot, of $next: yes" "one with a module"
printf '0.2.0-0 %s\n' boot-5 boot-6 > "$crashes-$next"
tap_is "$(status | tail -n 1 | cut -c -71)" "next boot, of $next: the machine went down twice in a row" \
	"which crashed"
rm "$crashes-$next"
echo "none [integrity] confidentiality" > lockdown
tap_is "$(status | tail -n 1)" "next boot, of $next: this kernel loads signed modules only (Secure \
Boot or lockdown), and $state/$next/$file is not signed: see SECURE BOOT in flowfd-livepatch(8)" \
	"which is not signed"
rm lockdown
echo 6.12.10-2 > "installed-$next"
tap_is "$(status | tail -n 1 | cut -c -60)" "next boot, of $next: no: there is no module fo" \
	"but not of that build"
rm enabled
echo 6.12.10-1 > "installed-$next"
tap_is "$(status | tail -n 1)" "next boot, of $next: no: 'systemctl enable flowfd-livepatch' has \
it loaded at boot" "a unit that is not enabled"
ln -s nothing off_file
tap_is "$(status | sed -n 1p; load)" "not in force: switched off by $off_file
switched off by $off_file" "switched off"
rm off_file
echo "quiet flowfd_livepatch=off" > cmdline
tap_is "$(load)" "switched off by the kernel parameter flowfd_livepatch=off" "at boot"
: > cmdline

# In a unit: what a signal or a lost connection ends is the client.
perl -MSocket -e 'socket $s, AF_UNIX, SOCK_STREAM, 0; bind $s, sockaddr_un("bus")'
printf '#!/bin/sh\necho "$*"\n' > bin/systemd-run
chmod +x bin/systemd-run
self=/usr/sbin/flowfd-livepatch
tap_is "$(export FLOWFD_LIVEPATCH_UNIT=; patience=9; load)" "-q --wait --pipe --collect \
--property=IgnoreOnIsolate=yes --property=DefaultDependencies=no --setenv=FLOWFD_LIVEPATCH_DIR=$state \
--setenv=FLOWFD_LIVEPATCH_UNIT=1 --setenv=FLOWFD_LIVEPATCH_PATIENCE=9 \
--description=flowfd-livepatch load /usr/sbin/flowfd-livepatch load" "a load is a unit of its own"
tap_is "$(FLOWFD_LIVEPATCH_UNIT=1 load | tail -n 1)" "in force" "which is none in another"
tap_is "$(FLOWFD_LIVEPATCH_UNIT=1 in_unit x; kill $BASHPID; echo alive)" "" \
	"and which does not keep a shutdown waiting"
rm bus
tap_is "$(in_unit x; for signal in HUP INT TERM QUIT TSTP; do kill -$signal "$BASHPID"; done
	echo alive)" "alive" "without systemd, signals do not end it"
tap_done
