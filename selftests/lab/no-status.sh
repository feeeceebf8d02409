# SPDX-License-Identifier: GPL-2.0-only
# Why a guest left no exit status; sourced by boot.
# shellcheck shell=bash

# no_status STATUS SECONDS LIMIT CONSOLE: STATUS is that of QEMU under timeout(1), which
# ended after so many seconds; CONSOLE is the file with what the kernel printed.
no_status()
{
	if [ "$2" -ge "$3" ]; then
		echo "the guest did not finish within $3 s; its log is above"
	elif [ "$1" != 0 ]; then
		echo "QEMU ended with status $1 after $2 s; what it said is above"
	elif [ -s "$4" ]; then
		echo "the guest ended after $2 s, before its command did; its log is above"
	else
		echo "QEMU ended after $2 s and ran no kernel; what it said is above"
	fi
}
