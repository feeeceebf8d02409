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

# offers WANTED WORD...: the last word is the one to complete; program is what runs
program=
offers() {
	local wanted=$1 name=$2
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	local function
	function=$(complete -p "$name" | sed 's/.*-F \([^ ]*\) .*/\1/')
	"$function" "${program:-$build/$name}" "${COMP_WORDS[COMP_CWORD]}" \
		"${COMP_WORDS[COMP_CWORD - 1]}"
	tap_is "${COMPREPLY[*]}" "$wanted" "$*"
}

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
install -m 755 /dev/null "$here/strangeprogram"
PATH=$PATH:$here

offers "info list balance" flowfdctl ""
offers "list" flowfdctl l
offers "--prometheus --help --usage --version" flowfdctl -
offers "--flow --json --pid --stats --help --usage --version" flowfdctl list -
offers "--json" flowfdctl list --stats --j
offers "--version" flowfdctl --help --v
offers "" flowfdctl list ""
offers "" flowfdctl balance --interval ""
offers "--max-delay --maximum" flowfd-run --m
offers "strangeprogram" flowfd-run strange
offers "strangeprogram" flowfd-run --maximum = 10 strange
offers "strangeprogram" flowfd-run -m 10 -- strange
offers "" flowfd-run cat strange
offers "" flowfd-run ./
offers "--rounds" flowfd-bench --r
offers "" flowfd-bench ""
offers "--output" flowfd-bench-report --o

program=$top/../livepatch/flowfd-livepatch
offers "--help build load unload status" flowfd-livepatch ""
offers "unload" flowfd-livepatch u
offers "--kernel --keep --package --sign" flowfd-livepatch build -
offers "" flowfd-livepatch load ""
offers "--json" flowfd-livepatch status ""
offers "$(cd /lib/modules 2>/dev/null && echo [0-9]*)" flowfd-livepatch build --kernel ""
tap_done
