# SPDX-License-Identifier: GPL-2.0-only
# The command "build": steps, each of which is done once. Sourced by flowfd-livepatch, which
# defines $data, $state, $cache, $running, say and die, after built-module.sh. DIR is a
# kernel's directory in $cache, with the log, and in DIR/root the build root with a stamp
# for each finished step; OUT is that in $state, with the module.
#
# A builder NAME-build is a file NAME-build.sh with the functions NAME_get_vmlinux,
# NAME_symbols and NAME_build; supported-kernels names it.
# shellcheck shell=bash disable=SC2154

for part in build-root debian-kernel needed-patches livepatch-module module-package \
	kpatch-build klp-build; do
	# shellcheck source=/dev/null
	. "$data/builder/$part.sh"
done

# step DIR NUMBER WHAT FUNCTION ARGUMENT...: calls the function unless it is done; its
# output goes to the log
step()
{
	local dir=$1 what="[$2/4] $3" stamp=$1/root/done-$4 start=$SECONDS status
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
		[ -e "$dir/log" ] || die "$dir is gone: the removal of a kernel removes its builds"
		tail -n 15 "$dir/log" >&2
		die "this step failed; the whole log is $dir/log." \
			"The next build resumes here"
	fi
	# After a power failure, the stamp must not be there without the files.
	sync -f "$dir"
	touch "$stamp"
	say "$what: $((SECONDS - start)) s"
}

# build VERSION KEEP: the command
build()
{
	local version=$1 dir=$cache/$1 out=$state/$1 root=$cache/$1/root
	local source series suites builder disk download minutes package needed patches own name
	local made_from
	read -r source series suites builder disk download minutes < <(supported_kernel "$1") ||
		die "there are no patches for kernel $version: see KERNELS in flowfd-livepatch(8)"
	# A module for the installed one could not be loaded.
	[ "$version" != "$running" ] || runs_as_installed ||
		die "the running kernel is not the linux-image-$version that is installed: reboot first"
	grep -qxF "$version" "$data/builder/tested-kernels" ||
		say "note: flowfd's own tests have not run on $version; what is built is checked" \
			"against this kernel all the same"
	# Root loads what is built here.
	umask 022
	mkdir -p "$dir" "$out"
	# For root alone: whoever can open a file can hold its lock.
	(umask 077 && : >> "$dir/private-lock")
	exec 9>> "$dir/private-lock"
	flock -n 9 || die "another build for $version is running"
	# Once, before the build: an upgrade of the package during it changes the files, and
	# then this build is an outdated one.
	own=$(grep -v '^#' "$data/builder/version")-$(inputs "$series")
	# shellcheck disable=SC2034 # for the builders
	name=flowfd_livepatch_${own##*-}
	if fits "$out" "$version" && ! is_outdated "$out" "$version" &&
		{ [ -z "$2" ] || [ -e "$root/build" ]; }; then
		[ "$2" ] || remove_root "$dir"
		say "$out/$file is up to date"
		return
	fi
	command -v mmdebstrap > /dev/null || die "mmdebstrap is not installed: apt install mmdebstrap"
	unshare --mount --propagation private true 2> /dev/null || die "a build mounts file" \
		"systems, which this container, or this chroot without a mount at /, does not allow"
	# What an interrupted build has left of a root is of no use, and takes space.
	[ -e "$root/made-from" ] || new_root "$dir" "$disk"
	use_proxy_of_apt
	say "[1/4] the archive ..."
	kernel_package "$dir/apt" "$version" "$source" "$suites"
	made_from="$suites $builder $package $(sha256sum < "$data/builder/build-root-packages")"
	[ "$(cat "$root/made-from" 2> /dev/null)" = "$made_from" ] || new_root "$dir" "$disk"
	say "building for $version, $package, with $builder in $dir: $disk GB there," \
		"$download MB of downloads, and then about $minutes minutes"
	step "$dir" 2 "build root ($suites)" make_root "$root" "$suites" "$builder"
	echo "$made_from" > "$root/made-from"
	step "$dir" 3 "kernel's source, symbols and compiler" \
		get_kernel "$root" "$version" "$source" "$package" "$builder"
	needed=$(needed_patches "$root" "$series")
	# Asked for, so not done, or not with these patches.
	rm -f "$root/done-build_module"
	mapfile -t patches <<< "$needed"
	step "$dir" 4 "livepatch" build_module "$root" "$out" "$version" "$package" \
		"$builder" "$own" "${patches[@]}"
	say "built $out/$file"
	# It can be made again, and takes gigabytes.
	[ "$2" ] || remove_root "$dir"
}

# new_root DIR GB: has the build begin with a new root, for which there must be space
new_root()
{
	local free
	remove_root "$1"
	free=$(df --output=avail -BG "$1" | tail -n 1 | tr -d ' G')
	[ "$free" -ge "$2" ] || die "a build needs $2 GB in $1, where $free GB are free"
}

# remove_root DIR: what says that it is whole goes first, as this may be interrupted
remove_root()
{
	rm -f "$1/root/made-from"
	rm -rf --one-file-system "$1/root" "$1/apt"
}
