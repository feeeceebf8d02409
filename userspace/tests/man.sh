#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The manual pages: well-formed, and in agreement with headers and programs.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tap.sh"

top=$(cd "${0%/*}/.." && pwd)

if command -v mandoc >/dev/null; then
	for page in "$top"/man/*.[1-9]; do
		tap_is "$(mandoc -T lint -W style "$page" 2>&1)" "" \
			"mandoc: ${page##*/}"
	done
else
	tap_skip "mandoc" "mandoc is not installed"
fi
if command -v groff >/dev/null && command -v man >/dev/null; then
	for page in "$top"/man/*.[1-9]; do
		tap_is "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
			man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
			2>&1 >/dev/null)" "" "man: ${page##*/}"
	done
else
	tap_skip "man" "man-db and groff are not installed"
fi

# plain PAGE: the text of a page's source, without what roff quotes
plain() {
	sed -e 's/^\.[BI]R* //' -e 's/\\(aq/'"'"'/g' -e 's/\\-/-/g' \
		-e 's/\\e/\\/g' "$top/man/$1"
}

# The table of requests: name and number of each, nothing more, nothing less.
requests=$(sed -e ':a' -e '/\\$/N; s/ *\\\n[ \t]*/ /; ta' \
	"$top/../uapi/linux/flowfd.h" |
	sed -n 's/^#define \([A-Z_]*\)[ \t]*\(_IO[WR]*(.*)\).*/\1 = \2/p' | sort)
tap_is "$(plain flowfd.4 | tr -d '"' | tr -s ' ' |
	grep '^[A-Z_]* = _IO' | sort)" \
	"$requests" "flowfd(4): requests"
names=$(sed -n 's/^#define \(FLOWFD_[A-Z0-9_]*\).*/\1/p' \
	"$top/../uapi/linux/flowfd.h")
for name in $names; do
	tap_ok "flowfd(4): $name" grep -qw "$name" "$top/man/flowfd.4"
done

functions=$(sed -n 's/^	\(flowfd_[a-z_]*\);/\1/p' "$top/lib/libflowfd.map" |
	sort)
tap_is "$(sed -n '/^\.SH NAME/,/\\-$/p' "$top/man/flowfd_counter_create.3" |
	grep -o 'flowfd_[a-z_]*' | sort)" "$functions" \
	"flowfd_counter_create(3): functions"

# The first program of flowfd(7) is the example that the build compiles.
tap_is "$(plain flowfd.7 | sed -n '/^#include <inttypes.h>/,/^}/p')" \
	"$(sed -n '/^#include <inttypes.h>/,/^}/p' "$top/examples/first.c" |
		expand -t 4)" "flowfd(7): first program"

# Every option of a program is in its page, and the other way round.
options=$("$build/flowfd-run" --help | grep -o -e '--[a-z-]*' | sort -u)
tap_is "$(sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$top/man/flowfd-run.1" |
	sed 's/\\-/-/g' | grep '^\.BR -' | grep -o -e '--[a-z-]*' | sort -u)" \
	"$(echo "$options" | grep .)" "flowfd-run(1): options"
tap_done
