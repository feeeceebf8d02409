#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The completions for bash: the words that they offer at a place of a command line.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../completions/flowfd.bash
. "$top/completions/flowfd.bash"
# shellcheck source-path=SCRIPTDIR source=../../livepatch/completions/flowfd-livepatch
. "$top/../livepatch/completions/flowfd-livepatch"
# compopt works only when readline calls.
# shellcheck disable=SC2317 # the completions call it
compopt() {
	nospace=$*
}

# offers WANTED WORD...: the last word is the one to complete; program is what runs
program=
offers() {
	local wanted=$1 name=$2
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	nospace=
	local function
	function=$(complete -p "$name" | sed 's/.*-F \([^ ]*\) .*/\1/')
	"$function" "${program:-$build/$name}" "${COMP_WORDS[COMP_CWORD]}" \
		"${COMP_WORDS[COMP_CWORD - 1]}"
	tap_is "${COMPREPLY[*]}" "$wanted" "$*"
}

# long PROGRAM [COMMAND]: the long options that its help has
long() {
	"$build/$1" "${@:2}" --help |
		grep -oE '^ {2,6}(-.( [A-Z]+)?, )?--[a-z-]+=?' |
		grep -oE -e '--[a-z-]+=?' | paste -sd ' '
}

offers "info list top balance" flowfdctl ""
offers "list" flowfdctl l
offers "$(long flowfdctl)" flowfdctl -
offers "$(long flowfdctl list)" flowfdctl list -
offers "--json" flowfdctl list --watches --j
offers "" flowfdctl list ""
offers "--interval=" flowfdctl top --i
tap_is "$nospace" "-o nospace" "and no blank after it"
offers "" flowfdctl top --interval ""
offers "" flowfdctl top --interval = ""
offers "--count=" flowfdctl top --interval = 0.5 --c
offers "" flowfdctl --prometheus ""
offers "" flowfdctl list --pid ""

offers "$(long flowfd-run)" flowfd-run -
offers "--maximum=" flowfd-run --maxi
offers "" flowfd-run --maximum ""
offers "${0%/*}/readme.sh" flowfd-run --log "${0%/*}/readm"
offers "${0%/*}/readme.sh" flowfd-run --log = "${0%/*}/readm"
offers "${0%/*}/readme.sh" flowfd-run -l "${0%/*}/readm"
offers "" flowfd-run --maximum = ""
offers "wait fail saturate drop" flowfd-run --overflow ""
offers "saturate" flowfd-run --overflow = s
offers "drop" flowfd-run -o d
offers "" flowfd-run --max-delay ""
offers "--burst=" flowfd-run --rate = 5 --bu
mkdir "${here=$(mktemp -d)}/bin"
trap 'rm -rf "$here"' EXIT
touch "$here/bin/strangeprogram" "$here/strangefile"
chmod +x "$here/bin/strangeprogram"
PATH=$PATH:$here/bin
cd "$here" || exit
offers "strangeprogram" flowfd-run strange
offers "strangeprogram" flowfd-run --maximum = 10 strange
offers "strangeprogram" flowfd-run -m 10 -- strange
offers "strangeprogram" flowfd-run -m 99 -R 9 --max-delay = 2ms --overflow drop strange
offers "strangefile" flowfd-run strangeprogram strange
offers "" flowfd-run strangeprogram --max
offers "strangefile" flowfd-run -m 10 -- strangeprogram -m strange

benchmarks=$("$build/flowfd-bench" --list | cut -d ' ' -f 1 | xargs)
offers "$benchmarks" flowfd-bench ""
offers "$(long flowfd-bench)" flowfd-bench -
offers "strangefile" flowfd-bench --json = strange
offers "" flowfd-bench --rounds ""
offers "strangefile" flowfd-bench-report strange
offers "$(long flowfd-bench-report)" flowfd-bench-report -

program=$top/../livepatch/flowfd-livepatch
offers "--help build load unload status" flowfd-livepatch ""
offers "unload" flowfd-livepatch u
offers "--kernel --keep --package --sign" flowfd-livepatch build -
offers "" flowfd-livepatch load ""
offers "--json" flowfd-livepatch status ""
offers "$(cd /lib/modules 2>/dev/null && echo [0-9]*)" flowfd-livepatch build --kernel ""
tap_done
