#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-bench.sh BUILD
# The benchmarks with the module: each row is measured, and a goal that is missed is found.

bench=$1/flowfd-bench
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"
[ -e /dev/flowfd ] || tap_skip_all "flowfd-bench" "the module is not loaded"

# facts EXPRESSION: evaluates a Python expression; b are the benchmarks by name,
# f(ROW, KEY) is a figure.
facts() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
b = {bench["name"]: bench for bench in r["benchmarks"]}
f = lambda row, key: row[key] and row[key]["median"]
print(eval(sys.argv[2]))' "$dir/result" "$1"
}

# Times are the emulator's, but all goals are looked at, and each row must be there.
"$bench" --rounds=1 --time=4 --instructions --check --json="$dir/result" \
	>"$dir/text" 2>"$dir/err"
tap_is "$?" "$(grep -c -m 1 MISSED "$dir/text")" "a goal that is missed is an error"
tap_is "$(facts '[name for name in b if not b[name]["rows"]]')" "[]" \
	"each benchmark measures something"
tap_is "$(grep -c '^  goal: ' "$dir/text")" \
	"$(grep -c '^	{ "' "${0%/*}/../bench/goals.c")" "each goal is checked"
tap_is "$(grep '^  goal: .*not measured' "$dir/text")" "" "and was measured"
tap_is "$(facts '[row["subject"] for row in b["cost"]["rows"]
	if row["operation"] == "write + read"]')" \
	"['eventfd', 'flowfd', '+ bucket', 'in memory', 'post', 'futex']" "each way to signal"
tap_is "$(facts '[row["channel"] for row in b["fanin"]["rows"]
	if f(row, "calls") < 1]')" "['in memory', 'post', 'futex']" \
	"only signals in memory take less than a system call each"
tap_is "$(facts '[row["channel"] for row in b["pingpong"]["rows"]
	if f(row, "sleeps") < 0.2]')" "[]" "threads that signal in turn sleep"
tap_is "$(facts '[row["subject"] for row in b["bucket"]["rows"]
	if f(row, "calls_per_s") > f(row, "writes_per_s")]')" "[]" \
	"no publisher makes more calls than writes"
tap_is "$(facts '[f(row, "per_token") > 2 for row in b["bucket"]["rows"]
	if row["subject"] == "in memory" and row["consumer"] == "epoll ET"]')" \
	"[False, False]" "a bucket limits the calls of a publisher in memory"

"$bench" --rounds=1 --time=2 --check fanin >"$dir/text" 2>&1
tap_is "$? $(grep -c ': met$' "$dir/text")" "0 2" "goals that hold for any times"
"$bench" --rounds=1 --time=2 --check ring >"$dir/text" 2>&1
tap_is "$? $(grep -c '^  goal:' "$dir/text")" "0 0" \
	"no goals for times of an emulated processor"
tap_done
