#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# role.sh: what the role of Ansible does on a host with livepatches and units, with files in
# place of the kernel's, and without packages (selftests/lab/try-role has those). Prints TAP.
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
role=$PWD/livepatch/ansible/flowfd
cd "$(mktemp -d)" || exit
mkdir -p bin sys/kernel/livepatch sys/module lib/flowfd-livepatch run/systemd/system units
sed "s|\([=\"]\)/sys/|\1$PWD/sys/|g; s|/var/lib/|$PWD/lib/|g; s|/run/|$PWD/run/|g
	s|^export PATH=|&$PWD/bin:|; s|^patience=.*|patience=1|; s|/proc/sys/kernel/tainted|$PWD/taint|" \
	"$role"/files/{host,look,packages,trial,rollout,command}.sh > host.sh
before=$PWD/lib/flowfd-livepatch/rollout/before

# The commands that it calls are noted. What the tool does then is in on-COMMAND.
cat > bin/flowfd-livepatch <<TEXT
#!/bin/sh
cd $PWD
[ "\$1" != list ] || { cat list; exit; }
echo "\$*" >> calls
[ ! -e "on-\$1" ] || . "./on-\$1"
TEXT
# There is a file for each unit that is enabled.
cat > bin/systemctl <<TEXT
#!/bin/sh
cd $PWD
echo "systemctl \$*" >> calls
for unit; do :; done
case "\$*" in
*is-enabled*) [ -e "units/\$unit" ] ;;
*is-active*) false ;;
*LoadState*) cat "load-\$unit" 2> /dev/null ;;
*SubState*) cat "state-\$unit" 2> /dev/null ;;
*enable*) touch "units/\$unit" ;;
*disable*) rm "units/\$unit" ;;
*) [ ! -e on-systemctl ] || . ./on-systemctl ;;
esac
TEXT
printf '#!/bin/sh\ncat %s/kernel\n' "$PWD" > bin/uname
echo 6.1.0-50-amd64 > kernel
echo 0 > taint
# installed VERSION [NOTE]: the module that is installed
installed()
{
	echo "6.1.0-50-amd64  $1  packaged, fixes CVE-1, running kernel${2-}" > list
}
installed 0.2.0-5
# No package is there to be configured.
printf '#!/bin/sh\n' > bin/dpkg
chmod +x bin/*

# host COMMAND...: prints what it says, and its status
host()
{
	true > calls
	sh -s "$@" < host.sh 2>&1
	echo "status $?"
}

# state NUMBER ENABLED TRANSITION: a livepatch that is loaded
state()
{
	mkdir -p sys/{kernel/livepatch,module}/flowfd_livepatch_"$1"
	echo "0.2.0-$1" > "sys/module/flowfd_livepatch_$1/version"
	echo "$2" > "sys/kernel/livepatch/flowfd_livepatch_$1/enabled"
	echo "$3" > "sys/kernel/livepatch/flowfd_livepatch_$1/transition"
}

# refused LIVEPATCH [FILE]: prints why
refused()
{
	host look "$1" flowfd-livepatch.service none "${@:2}" |
		sed -n 's/.*"refused": "\([^"]*\)".*/\1/p'
}

# new_host: without a livepatch and a rollout
new_host()
{
	rm -rf sys/*/*/* lib/flowfd-livepatch units/* run/systemd/system/* \
		on-* state-* load-*
}

# tool_calls: what was called but systemctl
tool_calls()
{
	grep -v '^systemctl' calls | paste -sd ,
}

# --- the way back from a newer livepatch
state 5 1 0
tap_is "$(host remember)" "status 0" "an older livepatch is in force"
state 7 0 1
not_as_before="what is loaded now is '0.2.0-5 0.2.0-7', of which '0.2.0-5' is in force, and \
it was '0.2.0-5'
status 1"
tap_is "$(host back)" "$not_as_before" "the newer one is neither in force nor taken back"
tap_is "$(tool_calls)" load "that was waited for"
tap_ok "there is still a way back" [ -e "$before" ]
echo 'rm -r sys/*/*/flowfd_livepatch_7' > on-load
tap_is "$(host back)" "status 0" "the same, and it is taken back then"
tap_ok "the rollout has ended" [ ! -e "$before" ]

for newer in 7 3; do
	new_host
	state 5 1 0
	host remember > remembered
	state $newer 1 0
	echo "rm -r sys/*/*/flowfd_livepatch_$newer" > on-load
	tap_is "$(host back) $(tool_calls)" "status 0 load" "both are in force, the newer one is $newer"
done

new_host
host remember > remembered
tap_is "$(host back) $(tool_calls)" "status 0 " "none is loaded, and none was"
host remember > remembered
state 7 0 1
echo 'exit 1' > on-unload
tap_is "$(host back) $(tool_calls)" "status 1 unload" "a load that was not taken back"
tap_ok "there is still a way back" [ -e "$before" ]
echo 'rm -r sys/*/*/flowfd_livepatch_7' > on-unload
tap_is "$(host back) $(tool_calls)" "status 0 unload" "none was in force"

new_host
state 5 1 0
state 7 1 0
host remember > remembered
rm -r sys/*/*/flowfd_livepatch_5
tap_is "$(host back)" "status 0" "two were in force, and one is"

# --- units
new_host
touch units/flowfd-livepatch.timer
host remember > remembered
host prepare yes > prepared
tap_is "$(ls units)" "" "during a rollout no unit is enabled"
echo 'exit 1' > on-systemctl
tap_is "$(host end flowfd-livepatch.service) $(ls units)" "status 1 " "one that does not start"
rm on-systemctl
# As of a host that is lost there.
touch units/flowfd-livepatch.service
tap_is "$(host back) $(ls units)" "status 0 flowfd-livepatch.timer" "goes back to the other"
host remember > remembered
host prepare yes > prepared
tap_is "$(host end flowfd-livepatch.service) $(ls units)" "status 0 flowfd-livepatch.service" \
	"one that starts"

# --- another kernel, for which there is no livepatch, and an older one that cannot be loaded
new_host
state 5 1 0
touch units/flowfd-livepatch.service
host remember > remembered
host prepare yes > prepared
rm -r sys/*/*/*
echo 'exit 1' > on-load
tap_is "$(host back) $(ls units)" "status 1 flowfd-livepatch.service" \
	"a livepatch that cannot be loaded again: the units are as before"
tap_ok "there is still a way back" [ -e "$before" ]
echo 6.1.0-56-amd64 > kernel
tap_is "$(refused yes)" "" "a host with another kernel is not refused before it goes back"
tap_is "$(host back) $(tool_calls)" "status 0 " "a host with another kernel goes back without it"
tap_is "$([ -e "$before" ] || ls units)" "flowfd-livepatch.service" "and has its units"
tap_ok "and is refused then" [ "$(refused yes)" ]
echo 6.1.0-50-amd64 > kernel

# --- no way back, which is said before anything is changed
new_host
state 5 1 0
touch units/flowfd-livepatch.service
host remember > remembered
installed 0.2.0-7
tap_is "$(host prepare yes) $(ls units)" "there would be no way back: version 0.2.0-5 is in \
force, and what is installed is 0.2.0-7: load that first
status 1 flowfd-livepatch.service" "what is in force is not what is installed"
rm "$before"
tap_is "$(refused no flowfd-tools_9_amd64.deb)" "" "packages beside it may still be changed"
host remember > remembered
tap_is "$(host prepare no | tail -n 1)" "status 0" "and are"
rm "$before"
host remember > remembered
touch units/flowfd-livepatch.service
installed 0.2.0-5
echo "0.2.0-5 boot" > lib/flowfd-livepatch/failed-6.1.0-50-amd64
tap_is "$(host prepare yes)" "there would be no way back: version 0.2.0-5 is in force, and has \
made trouble: see $PWD/lib/flowfd-livepatch/failed-6.1.0-50-amd64
status 1" "what is in force would not be loaded again"

# --- what would fail in a stage
new_host
state 5 1 0
printf '#!/bin/sh\nexit 1\n' > bin/systemd-detect-virt
cat > bin/dpkg-query <<TEXT
#!/bin/sh
case "\$*" in
*Want*) cat $PWD/want ;;
*) echo installed 1 ;;
esac
TEXT
chmod +x bin/*
echo install > want
newer=flowfd-livepatch-6.1.0-50-amd64_2_all.deb
tap_is "$(refused yes $newer)" "" "a host that can have it"
tap_is "$(refused yes "flowfd-livepatch-6.1.0-50-amd64_2 (1)_all.deb")" \
	"'flowfd-livepatch-6.1.0-50-amd64_2 (1)_all.deb' is not the name of a package file" \
	"a file name with a blank"
echo hold > want
tap_is "$(refused yes $newer)" "flowfd-livepatch-6.1.0-50-amd64 is on hold" "a package on hold"
echo install > want
echo masked > load-flowfd-livepatch.service
tap_is "$(refused yes $newer)" "flowfd-livepatch.service is masked" "a unit that is masked"
rm load-*
installed 0.2.0-7
tap_is "$(refused yes $newer)" "there would be no way back: version 0.2.0-5 is in force, and what \
is installed is 0.2.0-7: load that first" "no way back"
installed 0.2.0-7 ", not used"
echo "6.1.0-50-amd64  0.2.0-5  built here, fixes CVE-1, running kernel" >> list
tap_is "$(refused yes $newer)" "" "what was built here is in force, and goes before the package"
installed 0.2.0-5
# files LIVEPATCH FILE: prints which are to be installed
files()
{
	host look "$1" none none "$2" | sed -n 's/.*"files": \[\([^]]*\)\].*/\1/p'
}
tap_is "$(files yes $newer)" "\"$newer\"" "a newer module"
tap_is "$(files no $newer)" "" "is not installed if it is not to be loaded"
rm -r sys/*/*/*
tap_is "$(files no $newer)" "\"$newer\"" "but where none is in force"
rm bin/dpkg-query

# --- a rollout that is lost while apt installs
new_host
host remember > remembered
echo vendor > lib/flowfd-livepatch/rollout/names
printf '#!/bin/sh\necho $$ > %s/apt; exec sleep 60\n' "$PWD" > bin/apt-get
chmod +x bin/apt-get
# In a shell of its own, as this one would say that it was killed.
(sh -s install < host.sh & echo $! > lost)
until [ -s apt ]; do sleep 0.1; done
kill -KILL "$(cat lost)"
locked="a command of another rollout still runs here: wait until that ends"
tap_is "$(host back)" "$locked
status 1" "does not go back under it"
# As in a way back from a first install.
rm -rf run/flowfd-livepatch
tap_is "$(refused no)" "$locked" "and is refused, also after the tool was removed"
tap_ok "there is still a way back" [ -e "$before" ]
kill "$(cat apt)"
rm bin/apt-get
tap_is "$(host back)" "status 0" "when apt has ended, it goes back"
tap_is "$(refused no)" "" "and is not refused"

# --- the lock of dpkg on the way back
new_host
touch units/flowfd-livepatch.service
host remember > remembered
host prepare yes > prepared
true > lib/flowfd-livepatch/rollout/packages
cat > bin/dpkg <<TEXT
#!/bin/sh
cd $PWD
[ -e locked ] || exit 0
rm locked
[ ! -e for-long ] || touch locked
echo "dpkg: error: dpkg frontend lock was locked by another process with pid 1"
exit 2
TEXT
touch locked for-long
tap_is "$(host back)" "dpkg: error: dpkg frontend lock was locked by another process with pid 1
status 1" "another program has it for long"
tap_ok "there is still a way back" [ -e "$before" ]
tap_is "$(ls units)" flowfd-livepatch.service "if the module is as before, so are the units"
echo "flowfd-livepatch-6.1.0-50-amd64 1 2" > lib/flowfd-livepatch/rollout/packages
printf '#!/bin/sh\necho installed 2\n' > bin/dpkg-query
chmod +x bin/dpkg-query
tap_is "$(host back | tail -n 2) $(ls units)" "until then, nothing loads a livepatch at boot
status 1 " "if it is not, that is said"
rm bin/dpkg-query for-long
true > lib/flowfd-livepatch/rollout/packages
tap_is "$(host back)" "status 0" "another program has it for a moment"
printf '#!/bin/sh\n' > bin/dpkg

# --- packages for the way back from the next version
new_host
host remember > remembered
kept=lib/flowfd-livepatch/rollout/kept
touch $kept/flowfd-tools_2_all.deb $kept/../old/flowfd-tools_1_all.deb
tap_is "$(host back) $(ls $kept)" "status 0 flowfd-tools_1_all.deb" \
	"an end that is interrupted has kept a newer one, and the way back keeps the older"

# --- a unit that the end of a rollout has started
new_host
state 5 1 0
host remember > remembered
sed -i 's/^\*is-active\*) false/*is-active*) [ -e active ]/' bin/systemctl
touch active
host back > said
tap_is "$(grep -c '^systemctl stop flowfd-livepatch$' calls)" 1 "is stopped on the way back"
rm active

# --- the watch since the boot
# changed: what systemctl was told to change
changed()
{
	sed -n 's/^systemctl \(kill\|start\|stop\) //p' calls | paste -sd ,
}
new_host
state 5 1 0
echo running > state-flowfd-livepatch.service
host remember > remembered
tap_is "$(host prepare yes) $(changed)" "status 0 " "it goes on while packages are installed"
tap_is "$(host back) $(changed)" "status 0 " "and when there is no trial"
host remember > remembered
tap_is "$(host trial 5) $(changed)" \
	"status 0 flowfd-livepatch.service,flowfd-livepatch-trial.service" "a trial ends it"
echo exited > state-flowfd-livepatch.service
tap_is "$(host back) $(changed)" \
	"status 0 flowfd-livepatch-trial.service,flowfd-livepatch-upgrade" \
	"and there is another one on the way back"

# --- the watch of a trial, on a kernel that has warned before
new_host
state 5 1 0
echo exited > state-flowfd-livepatch-trial.service
echo 512 > taint
echo 3 > sys/kernel/warn_count
host remember > remembered
tap_is "$(host watched)" "well
status 0" "no other warning"
echo 4 > sys/kernel/warn_count
tap_is "$(host watched)" "failed
the kernel has warned or oopsed again: 3 warnings and 0 oopses were before, 4 and 0 are now
status 0" "another one"
sed -i '/^warnings=/d' "$before"
tap_is "$(host watched)" "well
status 0" "a rollout that an older role began"
host back > said
rm sys/kernel/warn_count
host remember > remembered
tap_is "$(host watched)" "well
status 0" "a kernel that does not count"
host back > said
echo 128 > taint
host remember > remembered
echo 1 > sys/kernel/oops_count
tap_is "$(host watched | head -n 1)" "failed" "another oops"
host back > said
echo 0 > taint
host remember > remembered
echo 1 > sys/kernel/warn_count
tap_is "$(host watched)" "well
status 0" "a report that sets no flag"
host back > said

# --- the timer, before it has started the service, and after that
new_host
echo waiting > state-flowfd-livepatch.timer
touch units/flowfd-livepatch.timer
for command in back "end none"; do
	host remember > remembered
	tap_is "$(host prepare yes) $(changed)" "status 0 flowfd-livepatch.timer" "a timer is stopped"
	# shellcheck disable=SC2086
	tap_is "$(host $command) $(changed) $(ls units)" \
		"status 0 flowfd-livepatch.timer flowfd-livepatch.timer" "and started again by $command"
done
echo elapsed > state-flowfd-livepatch.timer
host remember > remembered
tap_is "$(host prepare yes) $(changed)" "status 0 " "one that has done its work is left alone"
tap_is "$(host back) $(changed)" "status 0 " "also on the way back"
tap_done
