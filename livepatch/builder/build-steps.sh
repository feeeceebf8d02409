# SPDX-License-Identifier: GPL-2.0-only
# The command "build": three steps, each of which is done once. Sourced by
# flowfd-livepatch, which defines $data, $state, say and die, after built-module.sh. A
# kernel's build directory DIR has the module, the log, a stamp for each finished step, and
# in DIR/root the build root.
#
# A builder NAME-build is a file NAME-build.sh with the functions NAME_get_vmlinux,
# NAME_symbols, NAME_check_source and NAME_build; supported-kernels names it.
# shellcheck shell=bash disable=SC2154

for part in build-root debian-kernel needed-patches livepatch-module module-package \
	kpatch-build klp-build; do
	# shellcheck source=/dev/null
	. "$data/builder/$part.sh"
done

# outdated DIR STEP...: makes the next build repeat these steps. The module stays until
# another one replaces it: the next boot may need it.
outdated()
{
	local dir=$1 step
	shift
	for step; do
		rm -f "$dir/done-$step"
	done
}

# discard DIR: removes a module that is of no use any more
discard()
{
	outdated "$1" build_module
	rm -f "$1/build-id" "$1/$file"
}

# step DIR NUMBER WHAT FUNCTION ARGUMENT...: calls the function unless it is done; its
# output goes to the log
step()
{
	local dir=$1 what="[$2/3] $3" stamp=$1/done-$4 start=$SECONDS status
	shift 3
	if [ -e "$stamp" ]; then
		say "$what: already done"
		return
	fi
	say "$what ..."
	# "if" or "||" would turn off set -e inside. kpatch-build and klp-build clean up
	# and exit when they are interrupted; without the trap the step would go on.
	set +e
	(set -e; trap 'exit 130' INT; "$@") >> "$dir/log" 2>&1
	status=$?
	set -e
	if [ "$status" != 0 ]; then
		tail -n 15 "$dir/log" >&2
		die "this step failed; the whole log is $dir/log." \
			"The next build resumes here"
	fi
	# After a power failure, the stamp must not be there without the files.
	sync -f "$dir"
	touch "$stamp"
	say "$what: $((SECONDS - start)) s"
}

# root_inputs SUITES BUILDER: prints a hash of what the build root depends on
root_inputs()
{
	(echo "$@" && cat "$data/builder/build-root-packages") | sha256sum
}

# check_running VERSION: exits with an error if another build of VERSION runs than is
# installed: a module for the installed one could not be loaded
check_running()
{
	[ "$1" != "$(uname -r)" ] || is_installed_kernel "$1" ||
		die "the running kernel is not the linux-image-$1 that is installed:" \
			"reboot first"
}

# check_tested DIR VERSION: exits with an error unless the livepatch was tested on this
# kernel
check_tested()
{
	local package
	package=$(cat "$1/package")
	awk -v v="$2" -v p="$package" '$1 == v && $2 == p { found = 1 }
		END { exit !found }' "$data/builder/tested-kernels" ||
		die "the livepatch was not tested on $2, $package:" \
			"'build --untested' builds it all the same"
}

# build VERSION UNTESTED: the command
build()
{
	local version=$1 dir=$state/$1 root=$state/$1/root name
	local series suites builder disk minutes needed patches own
	read -r series suites builder disk minutes < <(supported_kernel "$version") ||
		die "there are no patches for kernel $version"
	check_running "$version"
	# Root loads what is built here.
	umask 022
	mkdir -p "$dir"
	# For root alone: whoever can open a file can hold its lock.
	(umask 077 && : >> "$dir/private-lock")
	exec 9>> "$dir/private-lock"
	flock -n 9 || die "another build for $version is running"
	command -v mmdebstrap > /dev/null || die "mmdebstrap is not installed"
	root_inputs "$suites" "$builder" | cmp -s - "$dir/root-inputs" ||
		outdated "$dir" make_root get_kernel build_module
	# Once, before the build: an upgrade of the package during it changes the files,
	# and then this build is an outdated one.
	own=$(current_version "$series")
	# shellcheck disable=SC2034 # for the builders
	name=flowfd_livepatch_${own##*-}
	echo "${own##*-}" | cmp -s - "$dir/inputs" || outdated "$dir" build_module
	[ -e "$dir/package" ] || outdated "$dir" get_kernel build_module
	is_complete "$dir" || outdated "$dir" build_module
	# An upgrade can bring another kernel of the same version string.
	if [ "$version" = "$(uname -r)" ] && [ -e "$dir/build-id" ] &&
		! running_build_id | cmp -s - "$dir/build-id"; then
		outdated "$dir" get_kernel
		discard "$dir"
	fi
	say "building for $version with $builder in $dir: takes $disk GB there," \
		"downloads, and then about $minutes minutes"
	step "$dir" 1 "build root ($suites)" make_root "$root" "$suites" "$builder"
	root_inputs "$suites" "$builder" > "$dir/root-inputs"
	step "$dir" 2 "kernel's source, symbols and compiler" \
		get_kernel "$dir" "$version" "$series" "$builder"
	needed=$(needed_patches "$dir" "$series")
	if [ -z "$needed" ]; then
		discard "$dir"
		touch "$dir/fixed"
		say "already fixed in this kernel"
		return
	fi
	rm -f "$dir/fixed"
	[ "$2" ] || check_tested "$dir" "$version"
	mapfile -t patches <<< "$needed"
	step "$dir" 3 "livepatch" \
		build_module "$dir" "$version" "$builder" "$own" "${patches[@]}"
	echo "${own##*-}" > "$dir/inputs"
	say "built $dir/$file"
}
