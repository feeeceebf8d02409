# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Runs Spin for a script that checks the models beside it, and prints TAP.
# shellcheck source=selftests/tap.sh
. "${BASH_SOURCE[0]%/*}/../../selftests/tap.sh"
set -euo pipefail
cd "${0%/*}"

# For the script to set: the model, and what 'breaks' hands to it.
subject=
small=()

model=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Seconds for each run. One that is not complete proves nothing.
limit=1800

# Nothing, where the variables that only one process uses are local.
reduction=-DNOREDUCE

# search NAME [-D...]: runs Spin in a directory of that name
search()
{
	local dir=$work/$1
	shift
	mkdir "$dir"
	cp "$model"/*.pml "$dir"
	cd "$dir"
	# Warnings would be about the code that Spin generates.
	# shellcheck disable=SC2086
	if spin -a "$@" "$subject.pml" > log 2>&1 &&
		gcc -w -O2 -DSAFETY -DCOLLAPSE $reduction -DMEMLIM=3500 \
			-o pan pan.c >> log 2>&1; then
		timeout "$limit" ./pan -m100000 -w24 >> log 2>&1 ||
			echo "error: pan ended with $?" >> log
	fi
	[ ! -f "$subject.pml.trail" ] ||
		spin -t "$@" "$subject.pml" > trail 2>&1 || true
	rm -f pan ./pan.*
	cd "$work"
}

# Prints the comment beside the assertion that failed.
broken()
{
	local line
	line=$(sed -n 's/^spin: [a-z]*.pml:\([0-9]*\), Error: assertion violated.*/\1/p' \
		"$1/trail" | head -n 1)
	[ -z "$line" ] ||
		sed -n "$line"'s:.*/\* \(.*\) \*/$:\1:p' "$1/$subject.pml"
}

# result NAME EXPECTED FOUND WHAT
result()
{
	tap_is "$3" "$2" "$4: $2"
	[ "$3" = "$2" ] || sed 's/^/# /' "$work/$1/log"
	echo "# $(grep -o '[0-9]* states, stored' "$work/$1/log")"
}

# report NAME WHAT: the model is expected to hold
report()
{
	local found="does not"
	if grep -q 'errors: 0$' "$work/$1/log" &&
		! grep -qE '^error|too small|not completed' "$work/$1/log"; then
		found=holds
	fi
	result "$1" holds "$found" "$2"
}

holds()
{
	search "$tap_checks" "${@:2}"
	report "$tap_checks" "$1"
}

# breaks PROPERTY WHAT -D...
breaks()
{
	search "$tap_checks" "${small[@]}" "${@:3}"
	result "$tap_checks" "$1" "$(broken "$work/$tap_checks")" "$2"
}
