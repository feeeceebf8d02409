# SPDX-License-Identifier: GPL-2.0-only
# The command "status". Sourced by flowfd-livepatch, which defines say, after
# loaded-livepatch.sh.
# shellcheck shell=bash disable=SC2154

# state_of LIVEPATCH: prints it
state_of()
{
	if in_force "$1" && [ "$(overridden "$1")" ]; then
		echo "in force in part"
	elif in_force "$1"; then
		echo "in force"
	elif is_enabled "$1"; then
		echo "coming into force"
	else
		echo "being unloaded"
	fi
}

# print_details LIVEPATCH
print_details()
{
	local version function
	version=$(version_of "$1")
	echo "  $1, version $version"
	! is_outdated "$version" "$(uname -r)" || echo "  outdated: build again, and load"
	for function in "$sysfs/$1"/*/*,*; do
		echo "  patches ${function##*/}"
	done
	overridden "$1" | sed 's/\(.*\) \(.*\)/  \1 is that of \2, which came later/'
	[ "$(cat "$modules/$1/retire" 2> /dev/null)" != 1 ] ||
		echo "  closes take epmutex, since another livepatch has come or an unload" \
			"was taken back: unload and load"
}

# Prints which livepatches may have replaced ours, as far as the module that is left says
# so: they came later, and it noticed one, if it looks for them.
replacers()
{
	local name
	for name in $(our_names "$modules"); do
		[ "$(cat "$modules/$name/retire" 2> /dev/null || echo 1)" != 1 ] ||
			later_names "$name"
	done | sort -u
}

# The command. Returns 0 if the livepatch is in force, 1 during a transition or if it is in
# force in part, 3 if it is not loaded.
status()
{
	local name names replacers state result=0
	need_livepatching
	names=$(our_names "$sysfs")
	if [ -z "$names" ]; then
		replacers=$(replacers | paste -sd ' ')
		if [ "$replacers" ]; then
			say "replaced by $replacers"
		else
			say "not loaded"
		fi
		return 3
	fi
	for name in $names; do
		state=$(state_of "$name")
		say "$state"
		in_force "$name" || blockers "$name" print_blocker
		print_details "$name"
		[ "$state" = "in force" ] || result=1
	done
	return $result
}
