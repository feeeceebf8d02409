#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The completions for fish.

build=$(cd "$1" && pwd)
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/../.." && pwd)
programs=$(cd "${0%/*}" && pwd)/programs
command -v fish >/dev/null || tap_skip_all "completions for fish" "fish is not installed"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
mkdir "$here/bin" "$here/functions"
PATH=$PATH:$build:$here/bin
for name in flowfdctl flowfd-run flowfd-bench flowfd-bench-report; do
	cp "$top/userspace/completions/flowfd.fish" "$here/functions/$name.fish"
done

# shellcheck disable=SC2317 # completions.sh calls it
offered() {
	fish --no-config "$programs/offered.fish" "$here/functions"
}
# shellcheck source-path=SCRIPTDIR source=programs/completions.sh
. "$programs/completions.sh"
tap_done
