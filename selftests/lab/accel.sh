# SPDX-License-Identifier: GPL-2.0-only
# How QEMU runs a guest's instructions on this machine; sourced by boot.
# shellcheck shell=bash

# choose_accel DIR COMMAND...: prints the argument of QEMU's -accel. COMMAND tries KVM:
# it prints flowfd-alive if a kernel runs there, for /dev/kvm may exist and still not
# run an ordinary kernel. The answer is kept in DIR until this machine reboots.
#
# Others may do the same at the same time, on this machine and, where the cache is
# shared, on another one. So an answer appears whole, is read once, and is removed only
# when it is a week old.
choose_accel()
{
	local dir=$1 answer known='' new
	shift
	answer=$dir/accel-$(cat /proc/sys/kernel/random/boot_id)
	read -r known 2> /dev/null < "$answer" || :
	case $known in
	kvm | tcg,thread=multi) ;;
	*)
		if "$@" 2> /dev/null | grep flowfd-alive > /dev/null; then
			known=kvm
		else
			known=tcg,thread=multi
		fi
		new=$(mktemp "$dir/accel-new.XXXXXX") || return
		echo "$known" > "$new"
		mv "$new" "$answer"
		find "$dir" -maxdepth 1 -ignore_readdir_race -name 'accel-*' \
			-mtime +7 -delete ;;
	esac
	echo "$known"
}
