# SPDX-License-Identifier: GPL-2.0-only
# For guest-check and guest-debug, beside lib.sh: what only a debug kernel has.
# shellcheck shell=bash

debug_stages()
{
	if [ -e "$FLOWFD_BUILD/flowfd_kunit.ko" ]; then
		stage "KUnit" selftests/lab/guest-kunit
	fi
	if [ -e /sys/kernel/debug/kmemleak ]; then
		stage "memory" selftests/lab/leaks
	fi
}
