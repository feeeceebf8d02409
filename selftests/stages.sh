# SPDX-License-Identifier: GPL-2.0-only
# For scripts that run several test suites one after the other: each suite closes
# with "N passed, N failed[, N skipped]", and so does the whole. What a stage prints is
# between "== NAME" and "== NAME: ..., N s", which selftests/quiet looks for.
# shellcheck shell=bash

stages_passed=0
stages_failed=0
stages_skipped=0
stages_log=$(mktemp)
trap 'rm -f "$stages_log"' EXIT

# stages_counts PASSED FAILED SKIPPED: in words
stages_counts()
{
	printf '%d passed, %d failed' "$1" "$2"
	[ "${3:-0}" = 0 ] || printf ', %d skipped' "$3"
}

# stage NAME COMMAND...: a suite that ends without its closing line, or fails
# without saying what failed, counts as one failure.
stage()
{
	local name=$1 status passed=0 failed=0 skipped=0 start=$SECONDS
	shift
	echo "== $name"
	"$@" 2>&1 < /dev/null | tee "$stages_log"
	status=${PIPESTATUS[0]}
	read -r passed failed skipped < <(
		sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' \
			"$stages_log" | tail -n 1)
	if [ -z "$passed" ] || [ $((passed + failed)) = 0 ]; then
		echo "== $name: did not say what it tested"
		failed=1
	elif [ "$status" != 0 ] && [ "$failed" = 0 ]; then
		echo "== $name: exit status $status"
		failed=1
	fi
	stages_passed=$((stages_passed + passed))
	stages_failed=$((stages_failed + failed))
	stages_skipped=$((stages_skipped + skipped))
	echo "== $name: $(stages_counts "$passed" "$failed" "$skipped"), $((SECONDS - start)) s"
}

# check NAME COMMAND...: a command that is one test by its exit status, and returns it.
check()
{
	local name=$1 start=$SECONDS
	shift
	echo "== $name"
	if "$@" < /dev/null; then
		stages_passed=$((stages_passed + 1))
		echo "== $name: ok, $((SECONDS - start)) s"
	else
		stages_failed=$((stages_failed + 1))
		echo "== $name: FAILED, $((SECONDS - start)) s"
		return 1
	fi
}

# if_time {stage|check} NAME COMMAND...: counts one as skipped where FLOWFD_UNTIL,
# seconds since 1970, has passed.
if_time()
{
	if [ "$(date +%s)" -lt "${FLOWFD_UNTIL-9999999999}" ]; then
		"$@"
	else
		echo "== $2: skipped, out of time"
		stages_skipped=$((stages_skipped + 1))
	fi
}

# The closing line; the exit status says whether all is well.
stages_end()
{
	stages_counts "$stages_passed" "$stages_failed" "$stages_skipped"
	echo
	[ "$stages_failed" = 0 ] && [ "$stages_passed" != 0 ]
}
