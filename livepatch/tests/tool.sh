#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tool.sh: functions of flowfd-livepatch that need neither a kernel nor a build root.
# Prints TAP.
# shellcheck disable=SC2034,SC2154,SC2317 # variables of and for the functions; called by name
set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh
# shellcheck source=livepatch/tests/functions.sh
. livepatch/tests/functions.sh

printf 'a\e]0;x\a\nb c' > ./comm
tap_is "$(task_name .)" "a?]0;x??b c" "a name with control characters"
tap_is "$(task_name /nothing)" "" "a task that has ended"
proc=$PWD/proc
sysfs=$PWD/waiting
mkdir -p "$sysfs/one" "$proc"/{11,12,13,14}/task/1
echo 1 | tee "$sysfs"/one/{enabled,transition} > "$proc/12/task/1/patch_state"
echo 0 | tee "$proc"/{11,13,14}/task/1/patch_state > zero
name_only()
{
	echo "$1"
}
tap_is "$(blockers one name_only | xargs) $(blockers one name_only 2 | xargs)" \
	"1 1 1 1 1 and for 1 more" "very many tasks are counted"
proc=/proc

sysfs=sysfs
modules=modules
mkdir -p sysfs/ours modules/ours/notes
enabled()
{
	echo "$1" > sysfs/ours/enabled
	echo "$2" > sysfs/ours/transition
}
enabled 1 0
tap_ok "in force" in_force ours
tap_ok "no transition" all_settled
enabled 0 0
tap_ok "not in force at the end of an unload" eval ! in_force ours
enabled 1 1
tap_ok "not in force in a transition" eval ! in_force ours
tap_ok "a transition" eval ! all_settled
# As when a livepatch goes while all are read.
mkdir sysfs/gone
ln -s none sysfs/gone/transition
tap_ok "a transition beside a livepatch that goes" eval '! (set -o pipefail; all_settled)'
rm -r sysfs/gone
rm sysfs/ours/*
tap_is "$(in_force ours 2>&1; echo $?)" 1 "not in force when it has gone"
echo abcd > module
tap_ok "no build ID is no build's" eval ! is_loaded_from ours module
true > modules/ours/notes/.note.gnu.build-id
tap_ok "nor is an empty one" eval ! is_loaded_from ours module
echo bcd > modules/ours/notes/.note.gnu.build-id
tap_ok "a build ID" is_loaded_from ours module
echo other > modules/ours/notes/.note.gnu.build-id
tap_ok "the build ID of another build" eval ! is_loaded_from ours module

mkdir sysfs/flowfd_livepatch_1 sysfs/vendor
tap_is "$(our_names sysfs)" "flowfd_livepatch_1" "our livepatches"
tap_is "$(other_names)" "ours
vendor" "the others"

# A module with fields, from a compiler.
echo 'const char info[] __attribute__((section(".modinfo"))) = "license=GPL";' > info.c
gcc -c -o info.ko info.c
tap_ok "fields are added" python3 "$data/builder/add-modinfo.py" info.ko version=1 \
	"flowfd_functions=ours both"
tap_is "$(field "$PWD/info.ko" license) $(field "$PWD/info.ko" version)" "GPL 1" \
	"they are there, and those that were"
tap_is "$(modinfo -F flowfd_functions "$PWD/info.ko")" "ours both" "modinfo shows them"
tap_is "$(field "$PWD/info.ko" functions)" "" "no field of another name"
echo 'int x;' > none.c
gcc -c -o none.ko none.c
tap_is "$(python3 "$data/builder/add-modinfo.py" none.ko version=1 2>&1; echo $?)" \
	"the module has no .modinfo
1" "no fields in what is no module"

# A module that the kernel lets go of a moment after the livepatch.
rmmod()
{
	[ "$(wc -l < retired)" = 2 ] && rm -r "modules/$1"
}
timeout()
{
	echo retired >> retired
}
patience=2
mkdir modules/replaced
true > modules/replaced/retire
tap_ok "a module that the kernel has not let go of yet" remove_rest replaced
unset -f timeout rmmod

# Later livepatches, which the kernel lists first, with a function of ours or another.
module_list=list_of_modules
printf '%s 16384 1 - Live 0x0 (OK)\n' vendor_later dummy flowfd_livepatch_1 vendor_earlier \
	> list_of_modules
for name in vendor_later flowfd_livepatch_1 vendor_earlier; do
	mkdir -p "sysfs/$name/vmlinux/ours,1"
	echo 1 > "sysfs/$name/enabled"
	echo 0 > "sysfs/$name/transition"
done
mkdir "sysfs/flowfd_livepatch_1/vmlinux/ours,2" sysfs/vendor_later/vmlinux/theirs,1 \
	modules/flowfd_livepatch_1
tap_is "$(overridden flowfd_livepatch_1)" "ours,1 vendor_later" "a function is another's"
blockers()
{
	"$2" 12 stuck ""
}
need_livepatching()
{
	:
}
uname()
{
	echo 5.10.0-1-amd64
}
tap_is "$(status; echo $?)" "in force in part
  flowfd_livepatch_1, version an old version
  patches ours,1
  patches ours,2
  ours,1 is that of vendor_later, which came later
1" "status says so"
echo 1 > modules/flowfd_livepatch_1/retire
tap_is "$(status | tail -n 1)" "  closes take epmutex, since another livepatch has come or an \
unload was taken back: unload and load" "status says what the fix of epoll does not gain"
rm modules/flowfd_livepatch_1/retire
echo 0 > sysfs/vendor_later/enabled
tap_is "$(status | head -n 1; overridden flowfd_livepatch_1)" "in force" \
	"not of one that is being unloaded"
echo 1 > sysfs/vendor_later/enabled
rm -r sysfs/vendor_later/vmlinux/ours,1
tap_is "$(status | head -n 1)" "in force" "another livepatch, other functions"
mv sysfs/flowfd_livepatch_1 away
tap_is "$(status)" "replaced by vendor_later" "replaced by one that came later"
sed -i 1d list_of_modules
tap_is "$(status)" "not loaded" "not by one that came earlier"
sed -i '1i vendor_later 1' list_of_modules
echo 0 > modules/flowfd_livepatch_1/retire
tap_is "$(status)" "not loaded" "nor by one that it did not notice"
rm -r sysfs/vendor_{later,earlier} modules/flowfd_livepatch_1 away
unset -f uname

# Transitions that do not end by themselves.
mkdir sysfs/flowfd_livepatch_2
state_is()
{
	echo "$1" > sysfs/flowfd_livepatch_2/enabled
	echo "$2" > sysfs/flowfd_livepatch_2/transition
}
patience=1
state_is 0 1
tap_is "$(put_back flowfd_livepatch_2)" "neither unloaded nor in force again: the \
kernel goes on, and until that ends no livepatch can be loaded or unloaded. Kill what it \
waits for:
  waits for 12 stuck" "an unload that ends in no direction"
tap_is "$(cat sysfs/flowfd_livepatch_2/enabled)" 1 "it is reversed"
tap_is "$(take_back flowfd_livepatch_2)" "neither in force nor taken back: the \
kernel goes on, and until that ends no livepatch can be loaded or unloaded. Kill what it \
waits for:
  waits for 12 stuck" "a load that ends in no direction"
tap_is "$(cat sysfs/flowfd_livepatch_2/enabled)" 0 "it is reversed"
tap_is "$(unload_one flowfd_livepatch_2)" "not unloaded yet: the kernel goes on, and until \
that ends no livepatch can be loaded or unloaded. Kill what it waits for:
  waits for 12 stuck" "an unload after that"
tap_is "$(cat sysfs/flowfd_livepatch_2/enabled)" 0 "does not put it in force"
state_is 1 0
tap_is "$(unload_one flowfd_livepatch_2)" "not unloaded from all tasks after 1 s, and in \
force again. It waited for:
  waits for 12 stuck" "an unload that is reversed"
state_is 0 0
patience=5
(
	sleep 0.5
	rm -r sysfs/flowfd_livepatch_2
) &
tap_ok "what is being unloaded can end" wait_for is_settled flowfd_livepatch_2
wait
mkdir -p sysfs/vendor/vmlinux/{theirs,both},1
tap_is "$(check_others "$PWD/info.ko")" "the livepatch vendor patches both, too: \
'load --override' puts this one in its place" "another livepatch patches the same function"
mv sysfs/vendor/vmlinux/both,1 sysfs/vendor/vmlinux/bothers,1
tap_ok "another livepatch patches other functions" check_others "$PWD/info.ko"
mkdir -p sysfs/vendor/module/both,1
tap_ok "or one of a module, of the same name" check_others "$PWD/info.ko"

# Where modules are, and the list.
state=$PWD/list
packaged=$PWD/packaged
mkdir -p list/6.1.0-50-amd64 list/6.1.0-56-amd64 list/6.1.0-47-amd64 packaged/6.1.0-47-amd64
true > list/6.1.0-56-amd64/fixed
current=$(current_version 6.1)
python3 "$data/builder/add-modinfo.py" info.ko flowfd_fixes=all
cp info.ko "list/6.1.0-50-amd64/$file"
gcc -c -o info.ko info.c
python3 "$data/builder/add-modinfo.py" info.ko "version=$current" flowfd_fixes=some
cp info.ko "list/6.1.0-47-amd64/$file"
cp info.ko "packaged/6.1.0-47-amd64/$file"
tap_is "$(list)" "6.1.0-47-amd64  $current  packaged, fixes some
6.1.0-47-amd64  $current  built here, fixes some, not used
6.1.0-50-amd64  1  built here, fixes all, outdated
6.1.0-56-amd64  already fixed in this kernel" "the list"
tap_is "$(module_dir 6.1.0-47-amd64)" "$packaged/6.1.0-47-amd64" "a package goes first"
tap_is "$(module_dir 6.1.0-50-amd64)" "$state/6.1.0-50-amd64" "without one, what was built"

# A module in a package, and one that was built here, for the running kernel: which is
# used, with their build IDs and versions.
uname()
{
	echo 6.1.0-48-amd64
}
running_build_id()
{
	echo "id"
}
# module DIR ID VERSION
module()
{
	mkdir -p "$1"
	gcc -c -o "$1/$file" info.c
	python3 "$data/builder/add-modinfo.py" "$1/$file" "version=$3" \
		vermagic=6.1.0-48-amd64 "flowfd_kernel=$2"
	echo "$2" > "$1/build-id"
}
# used PACKAGE-ID PACKAGE-VERSION BUILT-ID BUILT-VERSION: prints which
used()
{
	module "$packaged/6.1.0-48-amd64" "$1" "$2"
	module "$state/6.1.0-48-amd64" "$3" "$4"
	basename "$(dirname "$(module_dir 6.1.0-48-amd64)")"
}
tap_is "$(used id "$current" id "$current")" packaged "a package that is up to date"
tap_is "$(used id 0 id 0)" packaged "a package, both outdated"
tap_is "$(used other "$current" id 0)" list "not a package for another build of the kernel"
tap_is "$(used id 0 id "$current")" list "not a package that is outdated, if the other is not"
tap_is "$(used id 0 other "$current")" packaged "unless that is for another build"
rm "$state/6.1.0-48-amd64/$file"
tap_is "$(module_dir 6.1.0-48-amd64)" "$packaged/6.1.0-48-amd64" "there is only a package"
module "$packaged/6.1.0-48-amd64" other "$current"
tap_is "$(module_dir 6.1.0-48-amd64)" "$packaged/6.1.0-48-amd64" "also if it does not fit"
touch "$state/6.1.0-48-amd64/fixed"
tap_is "$(module_dir 6.1.0-48-amd64)" "$state/6.1.0-48-amd64" "unless the kernel needs none"
rm -r "$state/6.1.0-48-amd64" "$packaged/6.1.0-48-amd64"
unset -f uname running_build_id

supported=$(supported_kernel 6.1.0-50-amd64)
tap_is "${supported%% *}" 6.1 "the series of a kernel"
current=$(current_version 6.1)
tap_is "${current%-*}" "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf")" \
	"the version is that of everything"
tap_ok "a build of the current version" eval ! is_outdated "$current" 6.1.0-50-amd64
tap_ok "an outdated build" is_outdated "${current%?????}00000" 6.1.0-50-amd64
tap_ok "a kernel without patches" eval ! is_outdated "$current" 5.10.0-1-amd64

# A build with steps that do nothing but write what they are given.
state=$PWD/state
# shellcheck source-path=SCRIPTDIR source=../builder/build-steps.sh
. "$top/livepatch/builder/build-steps.sh"
# The language of the user: the tool calls uname(1).
mkdir bin
printf '#!/bin/sh\necho "$LC_ALL" > "%s"\n' "$PWD/language" > bin/uname
chmod +x bin/uname
tap_is "$(PATH=$PWD/bin:$PATH LC_ALL=C.UTF-8 "$top/livepatch/flowfd-livepatch" --help | head -n 1
	cat language)" "usage: flowfd-livepatch COMMAND
C" "the user's language changes nothing"

# The environment in the build root.
tap_is "$(
	export https_proxy="http://me:secret@proxy
		" other=other
	environment=()
	environment_of_root
	tap_function()
	{
		:
	}
	export -f tap_function
	[[ "${environment[*]}" != *secret* ]] || echo "secret in the arguments"
	"${environment[@]}" sh -c 'env -0 | sort -z' | sed -z 's/\(PATH\|PWD\)=.*/\1/' |
		tr '\0' ,)" "DEBIAN_FRONTEND=noninteractive,HOME=/root,LC_ALL=C.UTF-8,PATH,PWD,\
https_proxy=http://me:secret@proxy
		," "proxies are in the root's environment alone"

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
	echo 6.1.1-1 > "$1/package"
}
needed_patches()
{
	[ -z "$needs" ] || echo "$needs"
}
# A module is complete if it is not empty.
field()
{
	cat "$1"
}
build_module()
{
	cd "$1/root/build" && [ "$content" ] && echo "$content" > "$name.ko" &&
		echo "id of $content" > build-id && replace_module "$1"
}
version=6.1.0-1-amd64
built=$state/$version

# Of the module and its build ID, none is there with another's, whatever is on the disk.
mkdir replaced
for name in old new; do
	echo "$name" > "$name.ko"
	echo "$name" > build-id
	replace_module replaced
done
: > calls
tap_is "$(
	for command in rm sync mv; do
		eval "$command() { echo $command \"\$@\" >> calls; command $command \"\$@\"; }"
	done
	replace_module replaced
	cat calls)" "rm -f replaced/build-id
sync replaced replaced/$file.new replaced/build-id.new
mv replaced/$file.new replaced/$file
sync replaced
mv replaced/build-id.new replaced/build-id" "the order in which a module is replaced"
tap_is "$(cat "replaced/$file" replaced/build-id)" "new
new" "by the new one"

# build_with CONTENT [PATCHES [UNTESTED]]: builds and prints the last line, module and build ID
build_with()
{
	(
		content=$1
		needs=${2-a patch}
		set -e
		build "$version" "${3-untested}" 2>&1 | tail -n 1
	)
	cat "$built/$file" "$built/build-id" 2> /dev/null
}

done="built $built/$file"
tap_is "$(build_with first)" "$done
first
id of first" "a build"
tap_is "$(stat -c %a "$built/private-lock")" 600 "users cannot hold its lock"
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
true > "$built/$file"
tap_is "$(build_with fourth)" "$done
fourth
id of fourth" "an empty module is built again"
rm "$built/build-id"
tap_is "$(check_fit "$built")" "$built/$file is incomplete: \
build again" "a module without build ID"
tap_is "$(build_with fifth)" "$done
fifth
id of fifth" "it is built again, too"
echo changed > "$built/inputs"
tap_is "$(build_with sixth "")" "already fixed in this kernel" \
	"when no patch is needed, there is no module"
tap_is "$(build_with seventh "a patch" "")" "the livepatch was not tested on $version, \
6.1.1-1: 'build --untested' builds it all the same" "a kernel that was not tested"
mkdir "$PWD/data"
cp -r "$data/builder" "$data"/6.1* "$PWD/data"
data=$PWD/data
echo "$version 6.1.1-1" >> "$data/builder/tested-kernels"
tap_is "$(build_with eighth "a patch" "")" "$done
eighth
id of eighth" "a kernel that was tested"
# The upgrade of the package while it is built, by the first build after this.
eval "$(declare -f build_module | sed '1s/build_module/build_only/')"
build_module()
{
	build_only "$@"
	[ -e "$data/upgraded" ] || echo "# upgraded" >> "$data/builder/version"
	touch "$data/upgraded"
}
echo changed > "$built/inputs"
tap_is "$(build_with ninth "a patch" "")" "$done
ninth
id of ninth" "a build during an upgrade"
tap_is "$(build_with tenth "a patch" "")" "$done
tenth
id of tenth" "is repeated"
tap_is "$(build_with eleventh "a patch" "")" "$done
tenth
id of tenth" "once"

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
tap_is "$(check_running "$version")" "the running kernel is not the linux-image-$version \
that is installed: reboot first" "another build of the kernel is installed"
tap_is "$(remedy "$version")" "reboot into the installed kernel, and build again if need be" \
	"a build for another build of the kernel"
runs=6.1.2-1
tap_ok "the installed kernel runs" check_running "$version"
tap_is "$(remedy "$version")" "build again" "a build for another build than is installed"
tap_ok "another version" check_running 6.1.0-2-amd64
tap_done
