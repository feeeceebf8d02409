# SPDX-License-Identifier: GPL-2.0-only
# For boot, apart so that tests/qemu can try it: how QEMU runs a guest's instructions,
# and what a guest's end and its log mean.
# shellcheck shell=bash

# choose_accel FILE COMMAND...: prints the argument of QEMU's -accel. COMMAND tries KVM:
# it prints flowfd-alive if a kernel runs there, for /dev/kvm may exist and still not
# run an ordinary kernel. That takes time, so FILE keeps the answer until this machine
# reboots. Others may do the same at the same time: FILE appears whole and is read once.
choose_accel()
{
	local file=$1 boot known new
	shift
	boot=$(cat /proc/sys/kernel/random/boot_id)
	known=$(sed -nE "s/^$boot (kvm|tcg,thread=multi)$/\1/p" "$file" 2> /dev/null) || :
	if [ -z "$known" ]; then
		known=tcg,thread=multi
		! "$@" 2> /dev/null | grep flowfd-alive > /dev/null || known=kvm
		new=$(mktemp "$file.XXXXXX") || return
		echo "$boot $known" > "$new"
		mv "$new" "$file"
	fi
	echo "$known"
}

# no_status STATUS SECONDS LIMIT CONSOLE: why a guest left no exit status. STATUS is
# that of QEMU under timeout(1), which ended after so many seconds; CONSOLE is the file
# with what the kernel printed.
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

# own_log: filters from the kernel's log the reports that are no fault of the module:
# data races between functions of which none is the module's, though it may have called
# them, and the allocator's reports of failures that faults.c, loading.c and the fuzzer
# inject. The console's lines end with CR and LF. The
# fuzzer's own look at the log, fuzz/log.c, has such exceptions too.
own_log()
{
	tr -d '\r' |
		sed -E '/ (faults|loading|fuzz): vmalloc error/,/<\/TASK>/d
			/kmem_cache_create.*\(flowfd_[a-z]+\) failed/,/<\/TASK>/d' |
		awk '
		/==========$/ {
			if (inside && (block !~ /BUG: KCSAN/ || block ~ /KCSAN[^\n]*\[flowfd\]/))
				printf "%s", block
			block = ""
			inside = !inside
			next
		}
		inside { block = block $0 "\n"; next }
		{ print }
		END { printf "%s", block }'
}
