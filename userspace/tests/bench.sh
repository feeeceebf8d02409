#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: bench.sh BUILD
# flowfd-bench without the module: its options, its errors, its result, and its page.

bench=$1/flowfd-bench
report=$1/flowfd-bench-report
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

# refuses STATUS MESSAGE ARGUMENT...
refuses() {
	wanted=$1 message=$2
	shift 2
	"$bench" "$@" >"$dir/out" 2>"$dir/err"
	tap_is "$? $(head -n 1 "$dir/err")" "$wanted flowfd-bench: $message" \
		"refuses: $*"
}

# facts RESULT EXPRESSION: evaluates a Python expression; r is the result, b its
# benchmarks by name, f(ROW, KEY) a figure.
facts() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
b = {bench["name"]: bench for bench in r["benchmarks"]}
f = lambda row, key: row[key] and row[key]["median"]
print(eval(sys.argv[2]))' "$1" "$2"
}

refuses 64 "nothing: no such benchmark (see flowfd-bench(1))" nothing
refuses 64 "0: not a number from 1 to 100" --rounds=0
refuses 64 "101: not a number from 1 to 100" --rounds=101
refuses 64 "-1: not a number from 1 to 10000" --time=-1
refuses 64 "2x: not a number from 1 to 10000" --time=2x
refuses 64 "ring: needs the module" --fallback ring
refuses 64 "--check: there are no goals without the module" --check --fallback
refuses 1 "$dir/none/x: No such file or directory" --fallback --json="$dir/none/x"

for program in bench run; do
	tap_is "$(readelf -d "$1/flowfd-$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')" \
		libc.so.6 "flowfd-$program needs the C library alone"
done
if [ -e /dev/flowfd ]; then
	tap_skip "says that the module is missing" "it is loaded"
else
	"$bench" cost >"$dir/out" 2>"$dir/err"
	tap_is "$? $(grep -c 'flowfd-bench: /dev/flowfd: .*modprobe.*--fallback' "$dir/err")" \
		"1 1" "says that the module is missing, and what can be measured"
fi

tap_ok "measures what needs no module" "$bench" --rounds=2 --time=2 --fallback \
	--json="$dir/result"
tap_ok "makes a page of it" "$report" -o "$dir/page" "$dir/result"
tap_is "$(facts "$dir/result" 'list(b)')" \
	"['cost', 'pingpong', 'processes', 'fanin', 'loop']" \
	"the result holds each such benchmark"
tap_is "$(facts "$dir/result" '{len(f["values"]) for b in r["benchmarks"]
	for row in b["rows"] for f in row.values()
	if isinstance(f, dict)}')" "{2}" "every figure has a value of each round"
tap_is "$(facts "$dir/result" '[row["subject"] for row in b["cost"]["rows"]
	if row["operation"] == "write + read"]')" \
	"['eventfd', 'in memory', 'post', 'futex']" "signals without the module"
tap_is "$(facts "$dir/result" '[row["channel"] for row in b["fanin"]["rows"]
	if f(row, "calls") < 1]')" "['in memory', 'post', 'futex']" \
	"a write for each signal of an eventfd is counted"
tap_is "$(facts "$dir/result" '[row["channel"] for row in b["pingpong"]["rows"]
	if f(row, "sleeps") < 0.2]')" "[]" "threads that signal in turn sleep"
tap_is "$(facts "$dir/result" 'all(bool(row["look"]) == (row["loop"] == "busy")
	for row in b["loop"]["rows"])')" True "only a busy loop looks"
tap_is "$("$bench" --rounds=1 --time=1 --fallback --json=- cost 2>/dev/null |
	facts /dev/stdin 'r["format"], r["version"], len(r["benchmarks"])')" \
	"('flowfd-bench', 2, 1)" "--json=- gives JSON and nothing else"
"$bench" --rounds=1 --time=1 --fallback --json=/dev/full cost \
	>/dev/null 2>"$dir/err"
tap_is "$? $(tail -n 1 "$dir/err")" \
	"1 flowfd-bench: /dev/full: No space left on device" \
	"a result that cannot be written is an error"

tap_is "$("$bench" --help 2>&1 >/dev/full; echo "status $?")" \
	"flowfd-bench: standard output: No space left on device
status 1" "nor help"

echo '{}' >"$dir/empty"
"$report" -o "$dir/none" "$dir/empty" 2>"$dir/err"
tap_is "$? $(cat "$dir/err")" \
	"1 flowfd-bench-report: $dir/empty: not a result of flowfd-bench" \
	"the report refuses other JSON"
echo '{"format": "flowfd-bench", "version": 1}' >"$dir/older"
"$report" -o "$dir/none" "$dir/older" 2>"$dir/err"
tap_is "$? $(cat "$dir/err")" \
	"1 flowfd-bench-report: $dir/older: format version 1 is not known" \
	"and that of an earlier version"
"$report" -o "$dir/none" "$bench" 2>"$dir/err"
tap_is $? 1 "and what is not JSON"
"$report" -o "$dir/none/x" "$dir/result" 2>"$dir/err"
tap_is "$? $(cat "$dir/err")" \
	"1 flowfd-bench-report: $dir/none/x: No such file or directory" \
	"a page that cannot be written is an error"

# changed EXPRESSION: the result with each median m replaced, and more done
changed() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
for bench in r["benchmarks"]:
    for row in bench["rows"]:
        for f in row.values():
            if isinstance(f, dict):
                m = f["median"]
                f["median"] = eval(sys.argv[2])
exec(sys.argv[3])
json.dump(r, sys.stdout)' "$dir/result" "$@"
}
# concludes RATIO: the headings of the conclusion if all ratios are that
concludes() {
	changed "$1" "" >"$dir/changed"
	"$report" -o "$dir/other" "$dir/changed"
	grep -o '<p>What [^:]*:' "$dir/other" | xargs
}
tap_is "$(concludes 0.5)" "<p>What gains:" "the page begins with its conclusion: gains"
tap_is "$(concludes 1.3)" "<p>What does not gain:" "or that there are none"
tap_is "$(grep -c 'What gains\|What does not' "$dir/page")" 1 "or what was measured"
# broken WHAT ERROR MEDIAN STATEMENT
broken() {
	changed "$3" "$4" >"$dir/changed"
	"$report" -o "$dir/none" "$dir/changed" 2>"$dir/err"
	tap_is "$? $(cut -d'(' -f1 "$dir/err")" \
		"1 flowfd-bench-report: $dir/changed: not a result of flowfd-bench: $2" "$1"
}
broken "figures of 0" ZeroDivisionError 0 ""
broken "a date that is none" AttributeError m 'r["date"] = 5'
broken "text in place of a figure" TypeError '"x"' ""
sed 's/"median": [0-9.]*/"median": 1'"$(printf '%05000d' 0)"'/' "$dir/result" >"$dir/changed"
"$report" -o "$dir/none" "$dir/changed" 2>"$dir/err"
tap_is "$? $(cut -d'(' -f1 "$dir/err")" \
	"1 flowfd-bench-report: $dir/changed: not a result of flowfd-bench: ValueError" \
	"a figure of 5000 digits"
tap_is "$(grep -o '<div class="bars">' "$dir/page" | wc -l)" 2 \
	"and plots of what was measured"
tap_is "$(grep -c 'goal' "$dir/page")" 0 "it has no goals"
tap_is "$(grep -Eo '(src|href)=|url\(' "$dir/page")" "" "it fetches nothing"
tap_is "$(grep -c 'compare ratios, not times' "$dir/page")" \
	"$(grep -c -m 1 QEMU /proc/cpuinfo)" "only on an emulator times do not compare"
tap_done
