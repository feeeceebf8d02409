#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tool.sh: functions of flowfd-livepatch that need neither a kernel nor a build root.
# Prints TAP.
# shellcheck disable=SC2317 # functions that are called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
top=$PWD
cd "$(mktemp -d)" || exit
name=flowfd_livepatch
# shellcheck source-path=SCRIPTDIR source=../loaded-livepatch.sh
. "$top/livepatch/loaded-livepatch.sh"

printf 'a\e]0;x\a\nb c' > ./comm
# shellcheck source-path=SCRIPTDIR source=../built-module.sh
. "$top/livepatch/built-module.sh"
tap_is "$(task_name .)" "a?]0;x??b c" "a name with control characters"
tap_is "$(task_name /nothing)" "" "a task that has ended"

mkdir loaded notes
loaded=loaded
notes=notes
enabled()
{
	echo "$1" > loaded/enabled
	echo "$2" > loaded/transition
}
enabled 1 0
tap_ok "in force" in_force
enabled 0 0
tap_ok "not in force at the end of an unload" eval ! in_force
enabled 1 1
tap_ok "not in force in a transition" eval ! in_force
rm loaded/*
tap_is "$(in_force 2>&1; echo $?)" 1 "not in force when it has gone"
echo abcd > module
tap_ok "no build ID is no build's" eval ! is_loaded_from module
true > notes/.note.gnu.build-id
tap_ok "nor is an empty one" eval ! is_loaded_from module
echo bcd > notes/.note.gnu.build-id
tap_ok "a build ID" is_loaded_from module
echo other > notes/.note.gnu.build-id
tap_ok "the build ID of another build" eval ! is_loaded_from module

# A build with steps that do nothing but write what they are given.
state=$PWD/state
data=$top/livepatch
say()
{
	echo "$@"
}
die()
{
	say "$@"
	exit 1
}
# shellcheck source-path=SCRIPTDIR source=../builder/build-steps.sh
. "$top/livepatch/builder/build-steps.sh"
needs="a patch"
content=first
mmdebstrap()
{
	:
}
make_root()
{
	mkdir -p "$1/build"
	echo "a root" >> "$1/made"
}
get_kernel()
{
	:
}
needed_patches()
{
	[ -z "$needs" ] || echo "$needs"
}
# A module is complete if it is not empty.
modinfo()
{
	[ -s "${!#}" ]
}
build_module()
{
	cd "$1/root/build" && [ "$content" ] && echo "$content" > "$name.ko" &&
		echo "id of $content" > build-id && replace_module "$1"
}
version=6.1.0-1-amd64
built=$state/$version

# build_with CONTENT [PATCHES]: builds and prints the last line, module and build ID
build_with()
{
	(
		content=$1
		needs=${2-a patch}
		set -e
		build "$version" 2>&1 | tail -n 1
	)
	cat "$built/$name.ko" "$built/build-id" 2> /dev/null
}

done="built $built/$name.ko"
tap_is "$(build_with first)" "$done
first
id of first" "a build"
tap_is "$(build_with second)" "$done
first
id of first" "it is not repeated"
echo changed > "$built/inputs"
tap_is "$(build_with "" | tail -n 2)" "first
id of first" "when the next build fails, the module stays"
tap_is "$(build_with third)" "$done
third
id of third" "the next build replaces module and build ID"
echo changed > "$built/root-inputs"
build_with third > /dev/null
tap_is "$(wc -l < "$built/root/made")" 2 "when the root's packages change, it is made again"
true > "$built/$name.ko"
tap_is "$(build_with fourth)" "$done
fourth
id of fourth" "an empty module is built again"
rm "$built/build-id"
tap_is "$(check_fit "$built")" "$built/$name.ko is incomplete: \
build again" "a module without build ID"
tap_is "$(build_with fifth)" "$done
fifth
id of fifth" "it is built again, too"
echo changed > "$built/inputs"
tap_is "$(build_with sixth "")" "already fixed in this kernel" \
	"when no patch is needed, there is no module"

# As after an upgrade of the kernel, and after the reboot.
dpkg-query()
{
	echo 6.1.2-1
}
uname()
{
	[ "$1" = -r ] && echo "$version" || echo "#1 SMP Debian $runs (2026-01-01)"
}
runs=6.1.1-1
tap_is "$(check_running "$version")" "the running kernel is not linux-image-$version \
6.1.2-1, which is installed: reboot first" "another build of the kernel is installed"
runs=6.1.2-1
tap_ok "the installed kernel runs" check_running "$version"
tap_ok "another version" check_running 6.1.0-2-amd64
tap_done
