#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The exports of libflowfd are the same in headers, symbol map and libraries, and
# pkg-config finds the library.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/.." && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# Functions that are both inline and exported are FLOWFD_INLINE; "static inline"
# functions are not exported.
header=$(sed -n -e '/^static/d' -e 's/^FLOWFD_INLINE //' \
	-e 's/^[a-z].*[ *]\(flowfd_[a-z_]*\)(.*/\1/p' \
	"$top"/include/*.h | sort -u)
map=$(sed -n 's/^	\(flowfd_[a-z_]*\);/\1/p' "$top/lib/libflowfd.map" | sort)
library=$(nm -D --defined-only --with-symbol-versions \
	"$build/libflowfd.so.1" | awk '$2 == "T" { print $3 }' | sort)
# Names that could collide with a program's; flowfd__ is reserved for the library.
static=$(nm -g --defined-only "$build/libflowfd.a" |
	awk 'NF == 3 && $3 !~ /^flowfd__/ { print $3 }' | sort)

tap_is "$map" "$header" "map and header"
tap_is "$library" "$(echo "$header" | sed 's/$/@@LIBFLOWFD_0.2/')" \
	"shared library and header"
tap_is "$static" "$header" "static library and header"
tap_is "$(readelf -d "$build/libflowfd.so.1" |
	sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" libflowfd.so.1 "soname"
tap_is "$(readlink "$build/libflowfd.so")" libflowfd.so.1 "development link"

# With the library installed, a program builds with the flags of pkg-config alone.
tap_ok "install" make -C "$top" O="$build" DESTDIR="$here" install
tap_is "$(for name in $map; do
	find "$here" -path "*/man3/$name.3" -exec cat {} + |
		sed '/^\.SH SYNOPSIS/q' | grep -ow "$name"
done | sort -u)" "$map" "each function's page is found by its name"
# Where the tools do not compile, there is the library alone, and its removal.
mkdir "$here/alone"
tap_ok "install the library" make -C "$top" O="$build" DESTDIR="$here/alone" install-lib
tap_ok "is there" test -e "$here/alone/usr/local/lib/libflowfd.so.1"
tap_ok "uninstall the library" make -C "$top" O="$build" DESTDIR="$here/alone" uninstall-lib
tap_is "$(find "$here/alone" ! -type d -o -name '*flowfd*')" "" "nothing is left of the library"
# By default it keeps away from what packages install, and can be removed.
tap_ok "install to /usr/local" test -x "$here/usr/local/bin/flowfdctl"
tap_is "$(find "$here" -name 'flowfd-livepatch*')" "" "no page of what is not installed"
mkdir "$here/other"
tap_ok "install elsewhere" make -C "$top" O="$build" DESTDIR="$here/other" install
mkdir -p "$here/other/usr/local/share/doc/another"
tap_ok "uninstall" make -C "$top" O="$build" DESTDIR="$here/other" uninstall
tap_is "$(find "$here/other" ! -type d -o -name '*flowfd*')" "" "nothing is left of it"
tap_ok "and all that is not its own" test -d "$here/other/usr/local/share/doc/another"
if ! command -v pkg-config >/dev/null; then
	tap_skip_all "pkg-config" "pkg-config is not installed"
fi
pc=$(find "$here" -name libflowfd.pc)
PKG_CONFIG_PATH=${pc%/*}
PKG_CONFIG_SYSROOT_DIR=$here
PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS PKG_CONFIG_ALLOW_SYSTEM_LIBS
# shellcheck disable=SC2046 # flags are separate words
tap_ok "builds with pkg-config" \
	"${CC:-cc}" -o "$here/first" "$top/examples/first.c" \
	$(pkg-config --cflags --libs libflowfd)
tap_is "$(readelf -d "$here/first" | grep -c 'NEEDED.*libflowfd.so.1')" 1 \
	"and needs libflowfd.so.1"
# shellcheck disable=SC2046
tap_ok "builds with the ring" \
	"${CC:-cc}" -o "$here/ring" "$top/examples/ring.c" \
	$(pkg-config --cflags --libs libflowfd) -pthread
tap_is "$(pkg-config --modversion libflowfd)" \
	"$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$top/../dkms.conf")" \
	"version"
tap_done
