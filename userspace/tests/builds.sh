#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The headers in the ways in which programs are compiled, and the tests of the inline
# functions (tests/ring.c, tests/mapped.c) and of counters without the module
# (tests/doorbell.c, tests/overtake.c, tests/open.c) in those that give other code.

build=$1
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../../selftests/tap.sh"

top=$(cd "${0%/*}/.." && pwd)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

cc=${CC:-cc}
cxx=${CXX:-c++}

# made COMPILER ARGUMENT...: compiles and links, against the library if it is set
library=$build/libflowfd.a
# shellcheck disable=SC2317 # tap_ok calls it
made() {
	"$@" -Wall -Wextra -Werror -I"$top/include" -I"$top/../uapi" \
		-I"$top" ${library:+"$library"} -pthread
}

# One source, both C and C++, calls inline functions directly and through a pointer;
# the other includes the headers in the other order.
cat >"$here/main.c" <<'END'
#include <flowfd.h>

#ifdef __cplusplus
extern "C"
#endif
unsigned int drain(struct flowfd_ring *ring, const struct flowfd_counter *counter);

int main(void)
{
	int (*next)(struct flowfd_ring *, struct flowfd_event *);
	int (*take)(const struct flowfd_counter *, uint64_t *);
	struct flowfd_counter counter;
	struct flowfd_event event;
	struct flowfd_ring ring;
	uint64_t value;

	next = flowfd_ring_next;
	take = flowfd_take;
	if (flowfd_counter_map(&counter, 0, FLOWFD_CONSUMER) == 0)
		return take(&counter, &value);
	if (flowfd_ring_create(&ring, 1, 0) < 0)
		return 0;
	while (next(&ring, &event) || drain(&ring, &counter))
		;
	flowfd_ring_destroy(&ring);
	return 0;
}
END
cat >"$here/drain.c" <<'END'
#include <flowfd-ring.h>
#include <flowfd-counter.h>
#include <flowfd.h>

#ifdef __cplusplus
extern "C"
#endif
unsigned int drain(struct flowfd_ring *ring, const struct flowfd_counter *counter);

unsigned int drain(struct flowfd_ring *ring, const struct flowfd_counter *counter)
{
	struct flowfd_event events[8];
	uint64_t value;

	if (flowfd_counter_is_mapped(counter) && flowfd_try_take(counter, &value) == 0)
		flowfd_add(counter, value);
	return flowfd_ring_harvest(ring, events, 8);
}
END

# dialects COMPILER LANGUAGE FLAGS...: each argument is one set of flags
dialects() {
	compiler=$1
	language=$2
	shift 2
	if ! command -v "$compiler" >/dev/null; then
		tap_skip "$compiler" "it is not installed"
		return
	fi
	for flags; do
		# shellcheck disable=SC2086 # flags are separate words
		tap_ok "$compiler $flags" made "$compiler" $flags \
			-o "$here/main" -x "$language" \
			"$here/main.c" "$here/drain.c" -x none
		tap_ok "and it runs" "$here/main"
	done
}

set -- "-O2" "-O0" "-Os -DFLOWFD_DEBUG" "-O0 -DFLOWFD_DEBUG"
dialects "$cc" c "$@" "-std=gnu90" "-std=c99 -pedantic" "-std=c11 -pedantic" \
	"-std=gnu2x" "-O2 -Wshadow -Wconversion -Wcast-qual -Wundef"
dialects clang c "$@" "-std=c99 -pedantic"
set -- "$@" "-std=c++11 -pedantic" "-std=c++20 -pedantic"
dialects "$cxx" c++ "$@"
dialects clang++ c++ "$@"

# A macro of the compiler says what the machine has.
less="-U__GCC_ATOMIC_LLONG_LOCK_FREE -D__GCC_ATOMIC_LLONG_LOCK_FREE=1"
# shellcheck disable=SC2086 # flags are separate words
made "$cc" $less -c -o "$here/less.o" "$here/main.c" 2>"$here/less"
tap_ok "refuses a machine without atomic instructions of 64 bits" \
	grep -q "atomic instructions of 64 bits" "$here/less"

# Names of a program's functions do not collide with those of the static library.
cat >"$here/names.c" <<'END'
#include <flowfd.h>

int device_open(void);
int device_open(void)
{
	return 1;
}

int device_ioctl(void);
int device_ioctl(void)
{
	return 2;
}

int device_close(void);
int device_close(void)
{
	return 3;
}

int main(void)
{
	return flowfd_counter_create(0, 0) == 0 || !*flowfd_version();
}
END
tap_ok "links a program with names of its own" made "$cc" -o "$here/names" \
	"$here/names.c"
tap_ok "and it runs" "$here/names"

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

# taking WHAT FLAG...: tests/ring.c and tests/mapped.c as other programs, the latter with
# the sources of the library
taking() {
	what=$1
	shift
	tap_ok "compiles $what" made "$cc" -std=gnu11 -D_GNU_SOURCE -O2 -g \
		"$@" -o "$here/ring" "$top/tests/ring.c"
	tap_ok "takes events $what" fixed "$here/ring"
	tap_ok "compiles counters $what" made "$cc" -std=gnu11 -D_GNU_SOURCE -O2 -g \
		-DFLOWFD_VERSION='""' "$@" -o "$here/mapped" "$top/tests/mapped.c" \
		"$top"/lib/*.c
	tap_ok "adds and takes $what" fixed "$here/mapped"
}

# posting WHAT FLAG...: tests/post.c as another program, with the library's sources
posting() {
	what=$1
	shift
	tap_ok "compiles posts $what" "$cc" -std=gnu11 -D_GNU_SOURCE -O2 -g \
		-Wall -Wextra -Werror \
		-DFLOWFD_VERSION='""' -I"$top/include" -I"$top/../uapi" -I"$top" \
		"$@" -o "$here/post" "$top/tests/post.c" "$top"/lib/*.c -pthread
	if setarch -R true 2>/dev/null; then
		tap_ok "posts $what" setarch -R "$here/post"
	else
		tap_ok "posts $what" "$here/post"
	fi
}

# ringing TEST WHAT FLAG...: a test of counters without the module, likewise
ringing() {
	test=$1
	what=$2
	shift 2
	tap_ok "compiles $test $what" made "$cc" -std=gnu11 -D_GNU_SOURCE -O2 -g \
		-DFLOWFD_VERSION='""' "$@" -o "$here/$test" "$top/tests/$test.c" \
		"$top"/lib/*.c
	tap_ok "$test $what" fixed "$here/$test"
}

sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
# shellcheck disable=SC2086
able $sanitize || sanitize=
# shellcheck disable=SC2086
taking "with FLOWFD_DEBUG" -DFLOWFD_DEBUG $sanitize
taking "by the library" -DLINKED
taking "without optimizing" -O0
posting "with FLOWFD_DEBUG" -DFLOWFD_DEBUG
posting "without optimizing" -O0
ringing doorbell "without optimizing" -O0
ringing overtake "without optimizing" -O0

# 32 bits have the code of all architectures except x86-64. The library, of 64 bits, is
# not linked.
library=
if able -m32; then
	taking "with 32 bits" -m32
	posting "with 32 bits" -m32
	ringing doorbell "with 32 bits" -m32
	ringing overtake "with 32 bits" -m32
	taking "with 32 bits and FLOWFD_DEBUG" -m32 -DFLOWFD_DEBUG
else
	tap_skip "32 bits" "the compiler cannot"
fi
# It does not support the fence that all other architectures use.
if [ "$(uname -m)" != x86_64 ]; then
	tap_skip "ThreadSanitizer" "for x86-64 alone"
elif able -fsanitize=thread; then
	taking "with ThreadSanitizer" -fsanitize=thread
	posting "with ThreadSanitizer" -fsanitize=thread
	ringing overtake "with ThreadSanitizer" -fsanitize=thread
	ringing open "with ThreadSanitizer" -fsanitize=thread
else
	tap_skip "ThreadSanitizer" "the compiler cannot"
fi
tap_done
