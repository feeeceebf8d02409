#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The manual pages are well-formed, and agree with headers and programs.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/.." && pwd)
# All pages.
set -- "$top"/man/*.[1-9] "$top"/../livepatch/*.8

if command -v mandoc >/dev/null; then
	for page; do
		tap_is "$(mandoc -T lint -W style "$page" 2>&1)" "" \
			"mandoc: ${page##*/}"
	done
else
	tap_skip "mandoc" "mandoc is not installed"
fi
if command -v groff >/dev/null && command -v man >/dev/null; then
	for page; do
		tap_is "$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
			man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
			2>&1 >/dev/null)" "" "man: ${page##*/}"
	done
else
	tap_skip "man" "man-db and groff are not installed"
fi

# plain PAGE: the source of a page, without roff's escapes
plain() {
	sed -e 's/^\.[BI]R* //' -e 's/\\(aq/'"'"'/g' -e 's/\\-/-/g' \
		-e 's/\\e/\\/g' "$top/man/$1"
}

# The list of requests is that of the header.
header=$top/../uapi/linux/flowfd.h
tap_is "$(sed -n '/^\.SS Requests/,/^\.SS Reading/s/^\([A-Z]*_IOC_[A-Z_]*\)	.*/\1/p' \
	"$top/man/flowfd.4" | sort)" \
	"$(sed -n 's/^#define \([A-Z]*_IOC_[A-Z_]*\).*/\1/p' "$header" | sort | grep .)" \
	"flowfd(4): requests"

# The header documents the errors that the module returns. ECANCELED is a placeholder for
# results, and the kernel makes EINTR of ERESTARTSYS or calls again.
errors=$(sed -n 's/.*-\(E[A-Z]*\)\>.*/\1/p' "$top"/../module/*.c | sort -u |
	grep -vxE 'ECANCELED|ERESTARTSYS')
for error in $errors; do
	tap_ok "<linux/flowfd.h>: $error" grep -qw "$error" "$header"
done

# functions PAGE: the functions in a page's NAME
functions() {
	sed -n '/^\.SH NAME/,/\\-$/p' "$1" | grep -o 'flowfd_[a-z_]*'
}

# Each function, exported or inline, is in exactly one page, and nothing else is.
documented=$(for page in "$top"/man/*.3; do functions "$page"; done | sort)
tap_is "$documented" "$(sed -n \
	's/^\( \*\|\/\*\*\) \(flowfd_[a-z_]*\) - .*/\2/p' \
	"$top"/include/*.h | sort)" "section 3: the functions of the headers"
tap_is "$(sed -n 's/^	\(flowfd_[a-z_]*\);/\1/p' "$top/lib/libflowfd.map" |
	grep -vxF "$documented")" "" "section 3: the functions of the library"
for page in "$top"/man/*.3; do
	for function in $(functions "$page"); do
		tap_ok "${page##*/}: synopsis of $function" \
			grep -q "^\.BI\? .*[ *\"]$function(" "$page"
		tap_ok "${page##*/}: description of $function" \
			grep -q "^\.BR $function ()" "$page"
	done
done
tap_is "$(sed -n 's/.*\(flowfd_[a-z_]*\)\( \|\\fP\)(3).*/\1/p' "$@" |
	grep -vxF "$documented")" "" "references to section 3"

# members FILE STRUCT: types and names, as a program's compiler sees them
members() {
	sed 's|/\*.*\*/||' "$1" | awk -v name="$2" '
		$0 == "struct " name " {" { inside = 1; next }
		inside && $1 == ".EE" || /^}/ { inside = 0 }
		inside && /;/ { sub(/__aligned_u64/, "__u64"); print $1, $2 }' | tr -d ';'
}

# Pages show structures with the types of their header: to print or compare a __u64 as
# another type is a warning, or an error.
for page in "$top"/man/*.3; do
	structs=$(sed -n 's/^struct \(flowfd_[a-z_]*\) {$/\1/p' "$page")
	for struct in $structs; do
		case $struct in
		# Nested in one that a page shows whole.
		flowfd_flow | flowfd_create_counter)
			nested="token_capacity\|token_rate\|qos" ;;
		*)
			nested=none ;;
		esac
		tap_is "$(members "$page" "$struct" | grep -v " $nested")" \
			"$(members "$(grep -l "^struct $struct {" "$header" "$top"/include/*)" \
				"$struct" | grep -v "$nested")" \
			"${page##*/}: types of struct $struct"
	done
done

# flowfd(7) leads to all other pages, and "man flowfd", which shows section 4, to it.
for page; do
	[ "${page##*/}" != flowfd.7 ] || continue
	name=${page##*/}
	section=${name##*.}
	name=${name%.*}
	tap_ok "flowfd(7), see also: $name($section)" sh -c \
		'sed "1,/^.SH SEE ALSO/d; s/[\\]//g" "$1" | grep -q "^.BR $2 ($3)"' \
		sh "$top/man/flowfd.7" "$name" "$section"
done
tap_ok "flowfd(4) begins with flowfd(7)" sh -c \
	'sed -n "/^.SH DESCRIPTION/,/^.PP/p" "$1" | grep -q "^.BR flowfd (7)"' \
	sh "$top/man/flowfd.4"

# The macros of the library, and the errors of watching: each has its own text.
macros=$(sed -n 's/^#define \(FLOWFD_[A-Z]*\)(.*/\1/p' "$top"/include/*.h)
for name in $macros; do
	tap_ok "flowfd_ring_create(3): $name" \
		grep -q "$name(" "$top/man/flowfd_ring_create.3"
done
tap_is "$(sed -n '/^\.SS Watching/,/^\.SS Waiting/s/^\.B \\-\(E[A-Z]*\)$/\1/p' \
	"$top/man/flowfd_ring_create.3" | grep -vx EFAULT | sort -u)" \
	"$(sed -n '/^const char \*flowfd_ring_strerror/,$s/.*case -\(E.*\):$/\1/p' \
		"$top/lib/error.c" | grep -vx ENOTTY | sort)" \
	"flowfd_ring_create(3): errors of watching, and flowfd_ring_strerror()"

# Programs in pages, and those that flowfd(7) names, are examples that the build compiles.
for shown in flowfd.7:bounded-queue flowfd_share.3:shared; do
	page=${shown%:*}
	program=examples/${shown#*:}.c
	tap_ok "$page has $program" sh -c '[ -z "${1##*"$2"*}" ]' sh "$(plain "$page")" \
		"$(sed -n '/^#include/,$p' "$top/$program" | expand -t 4)"
done
for name in $(plain flowfd.7 | grep -x '[a-z-]*\.c'); do
	tap_ok "flowfd(7) names examples/$name" [ -f "$top/examples/$name" ]
done

# A program and its page have the same options.
options=$("$build/flowfd-run" --help | grep -o -e '--[a-z-]*' | sort -u)
tap_is "$(sed -n '/^\.SH OPTIONS/,/^\.SH EXIT/p' "$top/man/flowfd-run.1" |
	sed 's/\\-/-/g' | grep '^\.BR -' | grep -o -e '--[a-z-]*' | sort -u)" \
	"$(echo "$options" | grep .)" "flowfd-run(1): options"

# Every command of flowfdctl and every option that only one of them has.
ctl=$build/flowfdctl
commands=$("$ctl" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
tap_is "$(sed -n 's/^\.SS \([a-z]*\)$/\1/p' "$top/man/flowfdctl.1")" \
	"$(echo "$commands" | grep .)" "flowfdctl(1): commands"
# ctl_options COMMAND...: the long options in its help, those of argp left out
ctl_options() {
	"$ctl" "$@" --help | grep -o '^ \{2,6\}\(-., \)\?--[a-z]*' |
		grep -o -e '--.*' | grep -vx -e --help -e --usage -e --version |
		sort
}
tap_is "$(sed -n 's/^\.SS \(\\-\\-[a-z]*\)$/\1/p' "$top/man/flowfdctl.1" | tr -d '\134')" \
	"$(ctl_options)" "flowfdctl(1): options in the place of a command"
for command in $commands; do
	tap_is "$(awk -v command="$command" '/^\.S/ { inside = $2 == command }
		inside' "$top/man/flowfdctl.1" | sed 's/\\-/-/g' |
		grep '^\.BR\? -' | grep -o -e '--[a-z]*' | sort)" \
		"$(ctl_options "$command")" "flowfdctl(1): options of $command"
done
tap_done
