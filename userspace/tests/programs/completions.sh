# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# What completions must offer, for every shell whose answers can be read from a program. A
# test script sources this; it has a function offered, which reads command lines, and
# prints for each a line with the words that are offered at its end. It is in an empty
# directory, here, whose bin/ is in PATH. Options with a value may end in "=".

touch "${here:?}/strangefile"
printf '#!/bin/sh\n' >"$here/bin/strangeprogram"
chmod +x "$here/bin/strangeprogram"
cd "$here" || exit

# long PROGRAM [COMMAND]: the long options that its help has
long() {
	"$@" --help | grep -oE '^ {2,6}(-.( [A-Z]+)?, )?--[a-z-]+' | grep -oE -e '--[a-z-]+'
}

# commands PROGRAM: those that its help has
commands() {
	"$1" --help | sed -nE 's/^  ([a-z]+)( \[.*\]|( \[.*\])?   *[^ ].*)$/\1/p'
}

# sorted: words in an order of their own, without "="
sorted() {
	tr ' ' '\n' | sed '/^$/d; s/=$//' | LC_ALL=C sort | paste -sd ' '
}

# offers WANTED LINE
offers() {
	echo "$2" >>"$here/lines"
	echo "$1" | sorted >>"$here/wanted"
}

offers "$(commands flowfdctl)" "flowfdctl "
offers "list" "flowfdctl li"
offers "$(long flowfdctl)" "flowfdctl --"
for command in $(commands flowfdctl); do
	offers "$(long flowfdctl "$command")" "flowfdctl $command --"
done
offers "--json" "flowfdctl list --watches --j"
offers "" "flowfdctl top --interval "
offers "--count" "flowfdctl top --interval=0.5 --cou"

offers "$(long flowfd-run)" "flowfd-run --"
offers "--maximum" "flowfd-run --maxi"
offers "" "flowfd-run --maximum "
offers "strangefile" "flowfd-run --log strange"
offers "strangefile" "flowfd-run -l strange"
offers "wait fail saturate drop" "flowfd-run --overflow "
offers "drop" "flowfd-run -o d"
offers "--keep-eventfd" "flowfd-run --keep-eventfd 5 --keep"
offers "strangeprogram" "flowfd-run strangepro"
offers "strangeprogram" "flowfd-run --maximum=10 strangepro"
offers "strangeprogram" "flowfd-run -m 10 -- strangepro"
offers "strangeprogram" "flowfd-run -m 99 -R 9 --max-delay 2ms strangepro"
offers "strangefile" "flowfd-run strangeprogram strange"
offers "" "flowfd-run strangeprogram --max"
offers "strangefile" "flowfd-run -m 10 -- strangeprogram -m strange"

if command -v flowfd-bench >/dev/null; then
	offers "$(flowfd-bench --list | cut -d ' ' -f 1)" "flowfd-bench "
	offers "$(long flowfd-bench)" "flowfd-bench --"
	offers "strangefile" "flowfd-bench --json strange"
	offers "" "flowfd-bench --rounds "
	offers "strangefile" "flowfd-bench-report strange"
	offers "strangefile" "flowfd-bench-report -o strange"
	offers "$(long flowfd-bench-report)" "flowfd-bench-report --"
else
	tap_skip "flowfd-bench" "it is not installed"
fi

offered <"$here/lines" | while read -r line; do
	echo "$line" | sorted
done >"$here/offered"
while read -r line <&3; do
	read -r wanted <&4
	read -r offered <&5 || offered="no answer"
	tap_is "$offered" "$wanted" "$line"
done 3<"$here/lines" 4<"$here/wanted" 5<"$here/offered"
