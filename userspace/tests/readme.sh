#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# README.md: its first program is the example that the guest runs, and compiles as
# printed; first steps come first; links have a target.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/../.." && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# The first block of C.
sed -n '/^```c$/,/^```$/p' "$top/README.md" | sed -e 1d -e '/^```$/,$d' \
	>"$here/program.c"
tap_is "$(cat "$here/program.c")" "$(sed -n '/^#include/,$p' \
	"$top/userspace/examples/bounded-queue.c")" \
	"the first program is examples/bounded-queue.c"
tap_ok "it compiles" "${CC:-cc}" -Wall -Wextra -Werror \
	-I"$top/userspace/include" -I"$top/uapi" -o "$here/program" \
	"$here/program.c" "$build/libflowfd.a" -pthread

# The loop on a ring compiles in a function that has its variables.
{
	printf '#include <%s>\n' errno.h stdio.h sys/epoll.h flowfd.h
	echo "void handle(uint64_t data, uint32_t events);"
	echo "int loop(int fd, void *connection);"
	echo "int loop(int fd, void *connection) {"
	sed -n '/^```c$/,/^```$/p' "$top/README.md" |
		awk '/^```c$/ { block++; next } /^```$/ { next } block == 2'
	echo "}"
} >"$here/loop.c"
tap_ok "so does the event loop" "${CC:-cc}" -Wall -Wextra -Werror -c \
	-I"$top/userspace/include" -I"$top/uapi" -o "$here/loop.o" \
	"$here/loop.c"

for words in "status" "7.2" "amd64" "arm64" "dpkg-buildpackage" "make check" \
	"When not to use it"; do
	tap_ok "its first 30 lines: $words" \
		sh -c 'head -n 30 "$1" | grep -qF "$2"' sh "$top/README.md" "$words"
done

# Files and headings that README.md, docs/ and livepatch/ refer to.
anchors() {
	sed -n 's/^##* //p' "$1" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9_\n-'
}
broken=$(for page in "$top"/README.md "$top"/CONTRIBUTING.md "$top"/docs/*.md "$top"/livepatch/*.md; do
	grep -o '](\([^):]*\))' "$page" | sed 's/^](\(.*\))$/\1/' |
	while read -r link; do
		file=${link%%#*}
		target=$page
		[ -z "$file" ] || target=${page%/*}/$file
		[ -e "$target" ] || echo "${page##*/}: $link"
		case $link in
		*#*) anchors "$target" | grep -qx "${link#*#}" ||
			echo "${page##*/}: $link" ;;
		esac
	done
done)
tap_is "$broken" "" "links lead to files and headings"
tap_done
