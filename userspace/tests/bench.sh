#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: bench.sh BUILD
# flowfd-bench without the module: its options, its errors, and result and page of its
# eventfd part.

bench=$1/flowfd-bench
report=$1/flowfd-bench-report
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"
[ -e "$bench" ] ||
	tap_skip_all "flowfd-bench" "jansson or liburing was not installed"

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

refuses 64 "nothing: no such benchmark (see --list)" nothing
refuses 64 "0: not a number from 1 to 100" --rounds=0
refuses 64 "101: not a number from 1 to 100" --rounds=101
refuses 64 "-1: not a number from 1 to 1000000000" --iterations=-1
refuses 64 "2x: not a number from 1 to 1000000000" --iterations=2x
refuses 64 "pipe: neither eventfd nor flowfd" --only=pipe
refuses 64 "--check compares, --only does not" --check --only=eventfd

tap_is "$("$bench" --list | cut -d' ' -f1 | xargs)" \
	"cost ring control mark memory post signal contend pingpong fanin loop burst latency coalesce bucket batch overflow wakeup producers creators" \
	"--list names all benchmarks"
if [ -e /dev/flowfd ]; then
	tap_skip "says that the module is missing" "it is loaded"
else
	"$bench" cost >"$dir/out" 2>"$dir/err"
	tap_is "$? $(grep -c 'flowfd-bench: /dev/flowfd: .*modprobe' "$dir/err")" \
		"1 1" "says that the module is missing"
fi

tap_ok "measures eventfd alone" "$bench" --short --rounds=2 --only=eventfd \
	--json="$dir/result"
tap_is "$(facts "$dir/result" '[b["name"] for b in r["benchmarks"]]')" \
	"['cost', 'ring', 'control', 'mark', 'memory', 'post', 'signal', 'contend', 'pingpong', 'fanin', 'loop', 'burst', 'latency', 'coalesce', 'bucket', 'batch', 'overflow', 'wakeup', 'producers', 'creators']" \
	"the result holds every benchmark"
tap_is "$(facts "$dir/result" '{row["subject"] for b in r["benchmarks"]
	for row in b["rows"] if "subject" in row}')" \
	"{'eventfd'}" "--only=eventfd measures no counter"
tap_is "$(facts "$dir/result" '{row["watcher"] for b in r["benchmarks"]
	for row in b["rows"] if "watcher" in row} - {"io_uring"}')" \
	"{'epoll ET'}" "and no ring"
tap_is "$(facts "$dir/result" '{len(f["values"]) for b in r["benchmarks"]
	for row in b["rows"] for f in row.values()
	if isinstance(f, dict) and "values" in f}')" \
	"{2}" "every figure has a value of each round"
tap_is "$(facts "$dir/result" '[v["value"] for v in
	b["bucket"]["verdicts"]]')" "[0.0]" "no event was lost"
tap_is "$(facts "$dir/result" '[row["channel"] for row in b["signal"]["rows"]
	if row["channel"] != "MSG_RING"]')" "['eventfd', 'pipe', 'futex', 'condition']" \
	"signal measures what there is without the module"
tap_is "$(facts "$dir/result" '"MSG_RING" in str(b["signal"])')" True \
	"and MSG_RING, or says why not"
tap_is "$(facts "$dir/result" '[{row["channel"] for row in b[name]["rows"]} ==
	{row["channel"] for row in b["signal"]["rows"]}
	for name in ("contend", "pingpong", "fanin") if b[name]["rows"]]' |
	grep -c False)" 0 "other benchmarks measure the same"
tap_is "$(facts "$dir/result" '[row["channel"] for row in b["fanin"]["rows"]
	if row["channel"] in ("eventfd", "pipe") and f(row, "calls") < 1]')" "[]" \
	"a write for each signal is counted"
tap_is "$(facts "$dir/result" 'all(bool(row["look"]) == (row["loop"] == "busy")
	for row in b["loop"]["rows"])')" True \
	"only a busy loop looks"
tap_is "$(facts "$dir/result" 'all(row["calls_per_s"] == row["writes_per_s"]
	for row in b["bucket"]["rows"])')" True \
	"and a call for each write of an eventfd"
tap_is "$(facts "$dir/result" '[v["value"] for v in b["overflow"]["verdicts"]]')" \
	"[0.0]" "nor in an overflow"
tap_is "$("$bench" --short --only=eventfd --json=- coalesce 2>/dev/null |
	facts /dev/stdin 'r["format"], r["version"], len(r["benchmarks"])')" \
	"('flowfd-bench', 1, 1)" "--json=- gives JSON and nothing else"
"$bench" --short --only=eventfd --json=/dev/full coalesce \
	>/dev/null 2>"$dir/err"
tap_is "$? $(tail -n 1 "$dir/err")" \
	"1 flowfd-bench: /dev/full: No space left on device" \
	"a result that cannot be written is an error"

echo '{}' >"$dir/empty"
"$report" -o "$dir/page" "$dir/empty" 2>"$dir/err"
tap_is "$? $(cat "$dir/err")" \
	"1 flowfd-bench-report: $dir/empty: not a result of flowfd-bench" \
	"the report refuses other JSON"
"$report" -o "$dir/page" "$bench" 2>"$dir/err"
tap_is $? 1 "the report refuses what is not JSON"
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
	tap_ok "the report is made" "$report" -o "$dir/page" "$dir/result"
	tap_is "$(grep -o '<h2>[a-z]*' "$dir/page" | xargs)" \
		"<h2>cost <h2>ring <h2>control <h2>mark <h2>memory <h2>post <h2>signal <h2>contend <h2>pingpong <h2>fanin <h2>loop <h2>burst <h2>latency <h2>coalesce <h2>bucket <h2>batch <h2>overflow <h2>wakeup <h2>producers <h2>creators" \
		"it has a section for every benchmark"
	tap_is "$(grep -c '<svg' "$dir/page")" "$(facts "$dir/result" \
		'16 + bool(b["contend"]["rows"])')" \
		"and plots of what there is without flowfd"
	# As from an emulated processor, with one goal missed.
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
r["machine"].update(processor="QEMU Virtual CPU", cpus=1)
r["settings"].update(unit="instructions")
[bench] = [b for b in r["benchmarks"] if b["name"] == "bucket"]
bench["verdicts"][0].update(met=False)
json.dump(r, open(sys.argv[2], "w"))' "$dir/result" "$dir/emulated"
	tap_ok "a report with another machine beside" "$report" -o "$dir/page3" \
		--beside "$dir/result" "$dir/emulated"
	tr '\n' ' ' <"$dir/page3" | sed 's/<h2.*//' >"$dir/top"
	tap_is "$(grep -o 'simulated time: ratios and instruction counts are what compares\|[0-9]* of [0-9]* goals are met\|missed, bucket: most events lost[^<]*' "$dir/top")" \
		"simulated time: ratios and instruction counts are what compares
$(facts "$dir/emulated" 'len([v for b in r["benchmarks"] for v in b["verdicts"]
		if v.get("met")])') of $(facts "$dir/emulated" 'len([v
		for b in r["benchmarks"] for v in b["verdicts"] if "met" in v])') goals are met
missed, bucket: most events lost or doubled in a run: 0" "the conclusion comes first"
	tap_is "$(grep -o 'doubled in a run: 0</td>.*' "$dir/page3" |
		grep -o 'data-on="[^"]*">0' | head -n 1)" \
		"data-on=\"$(facts "$dir/result" \
			'["one processor", "%d processors" % r["machine"]["cpus"]][r["machine"]["cpus"] > 1]'
		)\">0" \
		"with the other machine's figure beside"
	tap_is "$(grep -c 'simulated' "$dir/page")" 0 "a real processor is not"
	tap_is "$(grep -o '<nav>.*</nav>' "$dir/page3" | grep -o 'href="#[^"]*' |
		sed 's/href="#//')" "$(grep -Eo '<(section|h2) id="[^"]*' "$dir/page3" |
			sed 's/.* id="//')" "the contents lead to each section"
	tap_is "$(grep -Eo '(src|href)="[^#"][^"]*"|url\([^#)]*\)' \
		"$dir/page")" "" "the page fetches nothing"
	tap_ok "--html makes the page at once" "$bench" --short \
		--only=eventfd --html="$dir/page2" coalesce
	tap_is "$(grep -c '<svg' "$dir/page2")" 1 "with the benchmark's plot"
else
	tap_skip "the report is made" "python3-matplotlib is not installed"
fi
tap_done
