#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The Debian packaging agrees with the sources: version, symbols, licences.

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/../.." && pwd)
debian=$top/debian

tap_is "$(sed -n '1s/^flowfd (\([^)]*\)).*/\1/p' "$debian/changelog")" \
	"$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf")" \
	"changelog and dkms.conf: version"

# What newer DKMS calls deprecated. It takes this one silently.
tap_is "$(grep -E '^(CLEAN|REMAKE_INITRD|MODULES_CONF|MODULES_CONF_OBSOLETES)' "$top/dkms.conf")" \
	'CLEAN="true"' "dkms.conf: nothing that is deprecated"

# Which has that of the suite as well, in a repository.
tap_is "$(grep -v '^#' "$top/livepatch/builder/version")" \
	"$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/dkms.conf" | sed 's/+deb.*//')" \
	"livepatch/builder/version and dkms.conf: version"

# Each exported function, with the version node that it is in.
tap_is "$(sed -n 's/^ \(flowfd_[^ ]*\) .*/\1/p' "$debian/libflowfd1.symbols" |
	sort)" \
	"$(awk '/^LIBFLOWFD/ { node = $1 }
		sub(/^\tflowfd_/, "flowfd_") { sub(/;/, "@" node); print }' \
		"$top/userspace/lib/libflowfd.map" | sort)" \
	"symbols file and symbol map"

# Files that builds and Python create need no licence, and links have that of their files.
files=$(cd "$top" && debian/sources | xargs -0 sh -c \
	'for file; do [ -L "$file" ] || [ ! -f "$file" ] || echo "${file#./}"; done' sh)

# Files under another licence than the most are listed in copyright; a pattern
# may be a directory.
listed() {
	awk -v licence="$1" '
	/^Files:/ { files = 1 }
	/^[A-Z]/ && !/^Files:/ { files = 0 }
	files { sub(/^Files:/, ""); if (NF) list = list $1 "\n" }
	/^License:/ { if ($0 == "License: " licence) printf "%s", list
		list = "" }' "$debian/copyright" |
	while read -r pattern; do
		find "$top/${pattern%/\*}" -type f
	done | sed "s|^$top/||" | grep -xF "$files" | sort
}

said() {
	cd "$top" && echo "$files" |
		grep -E '^(module|uapi|userspace|bindings|selftests|docs)/' |
		xargs awk -v licence="$1" '
		FNR > 4 { nextfile }
		/SPDX-License-Identifier:/ {
			sub(/.*SPDX-License-Identifier: /, "")
			sub(/ ?(\*\/|-->)?$/, "")
			if ($0 == licence) print FILENAME
			nextfile
		}' | sort
}

# Each page is in one package, and flowfd(7), to which the pages of the tools refer,
# in that of the tools.
packages=$(grep -l '^usr/share/man/man7$' "$debian"/*.install)
tap_is "${packages##*/}" flowfd-tools.install "flowfd(7): its package"
for section in 1 3 7; do
	tap_is "$(cat "$debian"/*.install |
		grep -c "^usr/share/man/man$section$")" 1 \
		"manual pages of section $section: one package"
done

tap_is "$(listed Expat)" "$(said MIT)" "copyright: MIT"
tap_is "$(listed "GPL-2 with Linux-syscall-note exception")" \
	"$(said "GPL-2.0-only WITH Linux-syscall-note")" \
	"copyright: Linux-syscall-note"

# apt takes the first that there is, and a package for all architectures cannot name
# one for each. So where headers of one architecture are recommended, those of every
# other are, too; the stock kernel's come first.
headers() {
	grep -o 'linux-headers-[^ ,|]*' "$debian/control" | sed -n "$1" | sort -u | xargs
}

tap_is "$(headers 's/-amd64$//p')" "$(headers 's/-arm64$//p')" \
	"headers for amd64 and for arm64"
tap_is "$(grep -o '^ linux-headers-[^,]*' "$debian/control" | cut -d ' ' -f 2,4)" \
	"linux-headers-amd64 linux-headers-arm64" "those of the stock kernel come first"
tap_done
