# SPDX-License-Identifier: GPL-2.0-only
# What "status" says, as JSON. Sourced by flowfd-livepatch after status.sh.
# shellcheck shell=bash disable=SC2154

# json TEXT: prints a string. The text has no control characters.
json()
{
	local text=${1//\\/\\\\}
	printf '"%s"' "${text//\"/\\\"}"
}

# raw TEXT
raw()
{
	printf '%s' "$1"
}

# json_list FUNCTION ARGUMENT...: what the function prints for each argument
json_list()
{
	local separator='' argument
	printf '['
	for argument in "${@:2}"; do
		printf '%s' "$separator"
		"$1" "$argument"
		separator=', '
	done
	printf ']'
}

# json_blocker ID NAME STACK: prints it on one line
json_blocker()
{
	printf '{"task": %d, "name": %s, "stack": %s}\n' "$1" "$(json "$2")" "$(json "$3")"
}

# json_truth COMMAND...
json_truth()
{
	if "$@"; then
		printf true
	else
		printf false
	fi
}

# json_livepatch LIVEPATCH
json_livepatch()
{
	local version functions waits overridden
	version=$(version_of "$1")
	mapfile -t functions < <(printf '%s\n' "$sysfs/$1"/*/*,* | sed 's/.*\///')
	mapfile -t overridden < <(overridden "$1" | cut -d ' ' -f 1)
	mapfile -t waits < <(in_force "$1" || blockers "$1" json_blocker)
	printf '{"name": %s, "version": %s, "state": %s, "outdated": %s, ' \
		"$(json "$1")" "$(json "$version")" "$(json "$(state_of "$1")")" \
		"$(json_truth is_outdated "$version" "$(uname -r)")"
	printf '"retired": %s, "functions": %s, "overridden": %s, "waits_for": %s}' \
		"$(json_truth grep -qsx 1 "$modules/$1/retire")" \
		"$(json_list json "${functions[@]}")" "$(json_list json "${overridden[@]}")" \
		"$(json_list raw "${waits[@]}")"
}

# The command. Returns what "status" does.
status_json()
{
	local names others result=0
	need_livepatching
	status > /dev/null || result=$?
	mapfile -t names < <(our_names "$sysfs")
	mapfile -t others < <(other_names)
	printf '{"kernel": %s, "in_force": %s, "replaced": %s, "livepatches": %s, "others": %s}\n' \
		"$(json "$(uname -r)")" "$(json_truth [ "$result" = 0 ])" \
		"$(if [ ${#names[@]} = 0 ]; then json_truth [ "$(replacers)" ]; else printf false; fi)" \
		"$(json_list json_livepatch "${names[@]}")" "$(json_list json "${others[@]}")"
	return $result
}
