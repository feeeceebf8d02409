#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The completions for zsh.

build=$(cd "$1" && pwd)
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/../.." && pwd)
programs=$(cd "${0%/*}" && pwd)/programs
command -v zsh >/dev/null || tap_skip_all "completions for zsh" "zsh is not installed"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
mkdir "$here/bin" "$here/functions"
PATH=$PATH:$build:$here/bin
cp "$top/userspace/completions/flowfd.zsh" "$here/functions/_flowfd"

# shellcheck disable=SC2317 # completions.sh calls it
offered() {
	zsh -f "$programs/offered.zsh" "$here/functions"
}
# shellcheck source-path=SCRIPTDIR source=programs/completions.sh
. "$programs/completions.sh"
tap_done
