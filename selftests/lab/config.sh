# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# shellcheck source=selftests/lab/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
