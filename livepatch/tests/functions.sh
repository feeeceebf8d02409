# SPDX-License-Identifier: GPL-2.0-only
# The functions of flowfd-livepatch, for tests of them without a kernel, in an empty
# directory: top is the project, and state is in that directory. Sourced at the top of the
# project.
# shellcheck shell=bash disable=SC2034,SC2317 # variables of the functions; called by name

top=$PWD
cd "$(mktemp -d)" || exit
data=$top/livepatch
state=$PWD/state
say()
{
	echo "$@"
}
die()
{
	say "$@"
	exit 1
}
for part in built-module loaded-livepatch load status status-json installed-modules health; do
	# shellcheck disable=SC1090
	. "$data/$part.sh"
done
