# SPDX-License-Identifier: GPL-2.0-only
# A Debian package of a module for one kernel, which hosts install instead of building.
# Sourced by build-steps.sh.
# shellcheck shell=bash disable=SC2154

# sign MODULE KEY CERT: appends a signature as the kernel's scripts/sign-file does. The key
# is not copied; openssl may ask for its passphrase.
sign()
{
	local signature=$1.p7s
	openssl cms -sign -binary -noattr -nocerts -md sha256 -outform DER \
		-in "$1" -inkey "$2" -signer "$3" -out "$signature"
	{
		cat "$signature"
		# struct module_signature: PKCS#7, and the length of what is above
		printf '\0\0\2\0\0\0\0\0'
		printf '%08x' "$(stat -c %s "$signature")" | sed 's/../\\x&/g' |
			xargs -0 printf '%b'
		printf '~Module signature appended~\n'
	} >> "$1"
	rm "$signature"
}

# unsign MODULE: removes the signature, whose length is in the 4 bytes before its magic
unsign()
{
	local length
	length=$(tail -c 32 "$1" | head -c 4 | od -An -tx1 | tr -d ' ')
	truncate -s -$((0x$length + 40)) "$1"
}

# sign_module OUT KEY CERT: signs the module in OUT, also if it was signed with another key
sign_module()
(
	set -e
	new=$1/$file.new
	trap 'rm -f "$new" "$new.p7s"' EXIT
	cp -p "$1/$file" "$new"
	! is_signed "$new" || unsign "$new"
	sign "$new" "$2" "$3"
	sync "$new"
	mv "$new" "$1/$file"
	say "signed $1/$file"
)

maintainer="${DEBFULLNAME:-flowfd-livepatch} <${DEBEMAIL:-root@localhost}>"

# package_name KERNEL
package_name()
{
	echo "flowfd-livepatch-$1"
}

# package_version MODULE: a later build of the same version is an upgrade
package_version()
{
	local version
	version=$(field "$1" version)
	echo "${version%-*}+$(date -u -r "$1" +%Y%m%d%H%M%S)"
}

# write_control KERNEL MODULE PACKAGED: the package's control files
write_control()
{
	cat > control <<-TEXT
		Package: $(package_name "$1")
		Version: $(package_version "$2")
		Architecture: amd64
		Section: kernel
		Priority: optional
		Maintainer: $maintainer
		Depends: flowfd-livepatch (>= $(grep -v '^#' "$data/builder/version"))
		Description: livepatch of flowfd for Linux $1
		 Fixes: $(field "$2" flowfd_fixes). Made from $(field "$2" version), for the
		 kernel with build ID
		 $(field "$2" flowfd_kernel).
		 flowfd-livepatch(8) says how to load it.
	TEXT
	# A newer module takes over from the one that is in force. Nothing is loaded that
	# the administrator has not enabled, or has unloaded. In a container the kernel is
	# another system's; one that has no systemd cannot be told from a host that has none.
	cat > postinst <<-TEXT
		#!/bin/sh
		set -e
		if [ "\$1" = configure ] && [ "\$(uname -r)" = "$1" ] && ! ischroot &&
			! systemd-detect-virt -cq 2> /dev/null &&
			systemctl -q is-enabled flowfd-livepatch.service \
				flowfd-livepatch.timer 2> /dev/null; then
			if [ -z "\${2-}" ] ||
				ls -d /sys/module/flowfd_livepatch* > /dev/null 2>&1; then
				flowfd-livepatch load || true
			fi
		fi
	TEXT
	cat > prerm <<-TEXT
		#!/bin/sh
		set -e
		if [ "\$1" = remove ] && [ "\$(uname -r)" = "$1" ] &&
			[ -d /run/systemd/system ] && ! ischroot &&
			! systemd-detect-virt -cq; then
			systemctl stop flowfd-livepatch || true
			for module in /sys/module/flowfd_livepatch*; do
				[ -d "\$module" ] || continue
				flowfd-livepatch unload || true
				break
			done
		fi
	TEXT
	chmod 755 postinst prerm
}

# write_docs KERNEL MODULE: licence and changelog
write_docs()
{
	cat > copyright <<-TEXT
		The module has code of Linux, https://www.kernel.org/, as changed by flowfd.
		Copyright 1991-2026 Linus Torvalds and others
		Copyright 2026 the authors of flowfd
		Both are under the GNU General Public License, version 2, which on Debian systems
		is in /usr/share/common-licenses/GPL-2. The same version of flowfd-livepatch has
		the changes, and builds the module from the source package of the kernel.
	TEXT
	printf '%s\n' "$(package_name "$1") ($(package_version "$2")) unstable; urgency=medium" "" \
		"  * Made from $(field "$2" version)." "" \
		" -- $maintainer  $(date -Rur "$2")" | gzip -n9 > changelog.gz
}

# make_package KERNEL DIR OUT: puts a package of the module in DIR into OUT
make_package()
(
	set -e
	tree=$(mktemp -d)
	trap 'rm -r "$tree"' EXIT
	content=$tree$packaged/$1
	doc=$tree/usr/share/doc/$(package_name "$1")
	mkdir -p "$content" "$doc" "$tree/DEBIAN"
	cp -p "$2/$file" "$content"
	(cd "$tree/DEBIAN" && write_control "$1" "$2/$file")
	(cd "$doc" && write_docs "$1" "$2/$file")
	(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
	chmod -R go=rX "$tree"
	dpkg-deb --root-owner-group -Zxz --build "$tree" "$3" > /dev/null
	say "made $3/$(package_name "$1")_$(package_version "$2/$file")_amd64.deb"
)
