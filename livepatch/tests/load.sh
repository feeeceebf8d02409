#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# load.sh: load and unload, with files in place of the kernel's. Prints TAP.
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
. "$data/built-module.sh"
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. "$data/loaded-livepatch.sh"
# shellcheck source-path=SCRIPTDIR source=../load.sh
. "$data/load.sh"
# shellcheck source-path=SCRIPTDIR source=../health.sh
. "$data/health.sh"
patience=1

# A lock that users cannot hold; they can hold that of a file that they can read.
chmod 711 .
private=$PWD/private
as_user()
{
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@" 2> /dev/null
}
touch readable
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
tap_done
