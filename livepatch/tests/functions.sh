# SPDX-License-Identifier: GPL-2.0-only
# The functions of flowfd-livepatch, for tests of them without a kernel, in an empty
# directory: top is the project, and the kernel's files and the tool's are in that
# directory. Sourced at the top of the project.
# shellcheck shell=bash disable=SC2034,SC2154,SC2317 # variables of and for the functions

top=$PWD
cd "$(mktemp -d)" || exit
data=$top/livepatch
state=$PWD/state
cache=$PWD/cache
running=6.1.0-50-amd64
say()
{
	echo "$@"
}
die()
{
	say "$@"
	exit 1
}
need_root()
{
	:
}
for part in built-module loaded-livepatch load status; do
	# shellcheck source=/dev/null
	. "$data/$part.sh"
done
for name in sysfs modules proc packaged private systemd bus boot counts off_file cmdline \
	boot_id lockdown; do
	printf -v "$name" %s "$PWD/$name"
done
crashes=$PWD/memory/crashes
memory=$crashes-$running
mkdir sysfs modules proc boot counts memory
touch cmdline proc/modules
echo boot-1 > boot_id
running_build_id()
{
	echo 1234
}
installed_package()
{
	cat "$top_of_test/installed-$1" 2> /dev/null || true
}
top_of_test=$PWD
echo 'const char info[] __attribute__((section(".modinfo"))) = "license=GPL";' > info.c
gcc -c -o info.o info.c
current=0.2.0-$(inputs 6.1)

# module DIR BUILD-ID VERSION [PACKAGE]: makes one for the running kernel
module()
{
	mkdir -p "$1"
	cp "$top_of_test/info.o" "$1/$file"
	python3 "$data/builder/add-modinfo.py" "$1/$file" "name=flowfd_livepatch_${3#*-}" \
		"version=$3" "vermagic=${1##*/} SMP" "flowfd_kernel=$2" "flowfd_fixes=some" \
		"flowfd_functions=ours both" "flowfd_package=${4-1}"
}

# livepatch NAME ENABLED TRANSITION FUNCTION...: one that the kernel has
livepatch()
{
	mkdir -p "$sysfs/$1" "$modules/$1"
	echo "$2" > "$sysfs/$1/enabled"
	echo "$3" > "$sysfs/$1/transition"
	echo "0.2.0-${1##*_}" > "$modules/$1/version"
	(cd "$sysfs/$1" && mkdir -p vmlinux "${@:4}")
}
