#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: guest-bench.sh BUILD
# The benchmarks of signals, with the module: each way to signal is measured, and only
# those without memory make a system call for each signal.

bench=$1/flowfd-bench
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"
[ -e "$bench" ] ||
	tap_skip_all "flowfd-bench" "jansson or liburing was not installed"

# facts EXPRESSION: evaluates a Python expression; b are the benchmarks by name,
# f(ROW, KEY) is a figure.
facts() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
b = {bench["name"]: bench for bench in r["benchmarks"]}
f = lambda row, key: row[key] and row[key]["median"]
print(eval(sys.argv[2]))' "$dir/result" "$1"
}

tap_ok "measures signals" "$bench" --short --rounds=1 --json="$dir/result" \
	signal contend pingpong fanin loop bucket
tap_is "$(facts '[row["channel"] for row in b["signal"]["rows"]
	if row["channel"] != "MSG_RING"]')" \
	"['eventfd', 'flowfd', 'mapped', 'post', 'pipe', 'futex', 'condition']" \
	"by each channel"
tap_is "$(facts '[row["channel"] for row in b["fanin"]["rows"]
	if row["calls"] and f(row, "calls") < 1]')" "['mapped', 'post', 'futex']" \
	"only signals in memory take less than a system call each"
tap_is "$(facts '[row["channel"] for row in b["pingpong"]["rows"]
	if f(row, "sleeps") < 1]')" "[]" "threads that signal in turn sleep"
tap_is "$(facts 'len(b["loop"]["rows"])')" \
	"$(facts '8 + 2 * any(row["channel"] == "MSG_RING"
		for row in b["signal"]["rows"])')" \
	"an idle and a busy loop"
tap_is "$(facts '[row["subject"] for row in b["bucket"]["rows"]
	if f(row, "calls_per_s") > f(row, "writes_per_s")]')" "[]" \
	"no publisher makes more calls than writes"
tap_is "$(facts '[f(row, "calls_per_s") > 2000 for row in b["bucket"]["rows"]
	if row["subject"] == "mapped" and row["consumer"] == "epoll ET + read"]')" \
	"[False, False]" "a bucket limits the calls of a publisher in memory"
tap_is "$(facts '{f(row, "lost") for row in b["bucket"]["rows"]}')" "{0.0}" \
	"nothing is lost"

# No event is left behind a mark: the benchmark would not end.
tap_ok "measures policies" "$bench" --short --rounds=1 --json="$dir/result" \
	batch overflow
tap_is "$(facts '[(row["subject"], row["mark"]) for row in b["batch"]["rows"]
	if f(row, "wakeups") > 0.5 and row["mark"] != "none"]')" "[]" \
	"a mark makes wakeups fewer"
tap_is "$(facts '[f(row, "ratio") < 1 / 30 for row in b["batch"]["rows"]
	if row["mark"] == "64, 2 ms" and row["writes/s"] == "100000"
	and f(b["batch"]["rows"][0], "wakeups") > 0.98]' | grep -c False)" 0 \
	"by its size, where an eventfd wakes each time"
tap_is "$(facts '[row["overflow"] for row in b["overflow"]["rows"]
	if f(row, "lost") > 0]')" "['saturate', 'drop']" "what loses"
tap_is "$(facts '[row["overflow"] for row in b["overflow"]["rows"]
	if f(row, "refused") > 0]')" "['fail']" "what refuses"
tap_is "$(facts '[f(row, "highest") < 100 for row in b["overflow"]["rows"]]')" \
	"[False, True, True, True, True]" "with the maximum"
tap_is "$(facts '{f(row, "off") for row in b["overflow"]["rows"]}')" "{0.0}" \
	"and all is accounted for"
tap_done
