#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The HTTP server of the examples on rings without the module: those tests of
# guest-http.py.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

if ! python3 -c 'import pytest' 2>/dev/null; then
	tap_skip_all "the HTTP server" "python3-pytest is not installed"
fi
exec python3 -B "${0%/*}/guest-http.py" "$build" -k fallback
