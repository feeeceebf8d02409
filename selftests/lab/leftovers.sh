# SPDX-License-Identifier: GPL-2.0-only
# What is left of the packages in a system after a purge. To be sourced.
# shellcheck shell=bash

# Logs, caches, the backups of dpkg and this project may stay. Large trees of the
# kernel's, where no file of ours can be, are left out. /run is a file system of its own.
files_left()
{
	find / /run -xdev \( -path /flowfd -o -path /proc -o -path /sys \
		-o -path /tmp -o -path /var/log -o -path /var/cache \
		-o -path '/usr/src/linux-*' \
		-o -path '/usr/lib/modules/*/kernel' \) -prune \
		-o -name '*flowfd*' -print
}

mentions_left()
{
	grep -rl flowfd /etc /usr/lib/modules-load.d /lib/modules/*/modules.* \
		/var/lib/dkms /var/lib/dpkg/{status,info,alternatives} 2> /dev/null
}
