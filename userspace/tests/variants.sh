#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Tests of the inline functions and of the library, built in the ways that give other code.

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/.." && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

cc=${CC:-cc}

# compile ARGUMENT...
# shellcheck disable=SC2317 # tap_ok calls it
compile() {
	"$cc" -std=gnu11 -D_GNU_SOURCE -DFLOWFD_VERSION='""' -O2 -g -Wall -Wextra -Werror \
		-I"$top/include" -I"$top/../uapi" -I"$top" "$@" -pthread
}

# compile_library FLAG...
# shellcheck disable=SC2317 # tap_ok calls it
compile_library() {
	rm -rf "$here/library"
	mkdir "$here/library"
	(cd "$here/library" && compile "$@" -c "$top"/lib/*.c)
}

# able FLAG...: whether the compiler makes programs with these flags
able() {
	printf '#include <stdint.h>\nint main(void)\n{\n\treturn 0;\n}\n' \
		>"$here/able.c"
	"$cc" "$@" -o "$here/able" "$here/able.c" 2>/dev/null &&
		"$here/able" 2>/dev/null
}

# fixed PROGRAM: ThreadSanitizer can fail with address space randomization
# shellcheck disable=SC2317 # tap_ok calls it
fixed() {
	if setarch -R true 2>/dev/null; then
		setarch -R "$1"
	else
		"$1"
	fi
}

# variant WHAT TESTS FLAG...: the library and these tests, separate words, as others
variant() {
	what=$1
	tests=$2
	shift 2
	tap_ok "compiles the library $what" compile_library "$@"
	for test in $tests; do
		tap_ok "compiles $test $what" compile "$@" -o "$here/$test" \
			"$top/tests/$test.c" "$here"/library/*.o
		tap_ok "$test $what" fixed "$here/$test"
	done
}

sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
# shellcheck disable=SC2086
able $sanitize || sanitize=
# shellcheck disable=SC2086
variant "with FLOWFD_DEBUG" "ring mapped" -DFLOWFD_DEBUG $sanitize
variant "with FLOWFD_DEBUG alone" post -DFLOWFD_DEBUG
variant "by the library" "ring mapped" -DLINKED
variant "without optimizing" "mapped post overtake" -O0

# 32 bits have the code of all architectures except x86-64.
if able -m32; then
	variant "with 32 bits" "ring mapped post doorbell overtake" -m32
	variant "with 32 bits and FLOWFD_DEBUG" mapped -m32 -DFLOWFD_DEBUG
else
	tap_skip "32 bits" "the compiler cannot"
fi
# It does not support the fence that all other architectures use.
if [ "$(uname -m)" != x86_64 ]; then
	tap_skip "ThreadSanitizer" "for x86-64 alone"
elif able -fsanitize=thread; then
	variant "with ThreadSanitizer" "ring mapped post overtake open ring-epoll" \
		-fsanitize=thread
else
	tap_skip "ThreadSanitizer" "the compiler cannot"
fi
tap_done
