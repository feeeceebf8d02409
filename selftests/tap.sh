# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Writes TAP for a test script; all test scripts source this file.

tap_checks=0
tap_failures=0

# tap_is GOT WANTED WHAT
tap_is() {
	tap_checks=$((tap_checks + 1))
	if [ "$1" = "$2" ]; then
		echo "ok $tap_checks - $3"
		return
	fi
	tap_failures=$((tap_failures + 1))
	echo "not ok $tap_checks - $3"
	printf 'got: %s\nwanted: %s\n' "$1" "$2" | sed 's/^/# /'
}

# tap_ok WHAT COMMAND...: shows the output of a command that fails
tap_ok() {
	tap_what=$1
	shift
	tap_status=0
	tap_output=$("$@" 2>&1) || tap_status=$?
	tap_is $tap_status 0 "$tap_what"
	[ $tap_status -eq 0 ] || echo "$tap_output" | sed 's/^/# /'
}

# tap_skip WHAT WHY
tap_skip() {
	tap_checks=$((tap_checks + 1))
	echo "ok $tap_checks - $1 # SKIP $2"
}

# tap_skip_all WHAT WHY: skips all other tests of the script
tap_skip_all() {
	tap_skip "$1" "$2"
	tap_done
}

tap_done() {
	echo "1..$tap_checks"
	[ "$tap_failures" -eq 0 ]
	exit
}
