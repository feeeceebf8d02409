#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The headers in the ways in which programs are compiled. build.mk has the tests.

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

# With FLOWFD_DEBUG, mistakes that lose a count or hang a loop end the program.
cat >"$here/debug.c" <<'END'
#include <flowfd.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const struct flowfd_create_counter settings = { .maximum = 4 };
	struct flowfd_ring_entry entry = { .op = FLOWFD_RING_ADD };
	struct flowfd_counter counter;
	struct flowfd_ring ring;
	uint64_t value;
	int ends[2];

	if (argc < 2 || pipe(ends) || flowfd_ring_create(&ring, 4, FLOWFD_FALLBACK) ||
	    flowfd_counter_open(&counter, &settings, sizeof(settings), FLOWFD_FALLBACK))
		return 2;
	entry.fd = ends[0];
	entry.events = EPOLLIN | EPOLLET;
	switch (atoi(argv[1])) {
	case 1:
		return flowfd_ring_add(&ring, ends[0], EPOLLIN | EPOLLET, 1);
	case 2:
		return flowfd_ring_add_pinned(&ring, ends[0], EPOLLIN | EPOLLET, 1);
	case 3:
		return flowfd_ring_control(&ring, &entry, 1);
	case 4:
		return flowfd_write(counter.fd, 1);
	case 5:
		return flowfd_read(counter.fd, &value);
	case 6:
		entry.op = FLOWFD_RING_ADD_PINNED;
		return flowfd_ring_control(&ring, &entry, 1);
	default:
		/* None of these is a mistake. */
		return flowfd_ring_add(&ring, -1, EPOLLIN | EPOLLET, 1) != -EBADF ||
		       flowfd_ring_add(&ring, counter.fd, EPOLLIN | EPOLLET, 1) ||
		       flowfd_write(-1, 1) != -EBADF;
	}
}
END
tap_ok "a program with FLOWFD_DEBUG" made "$cc" -DFLOWFD_DEBUG -D_GNU_SOURCE \
	-o "$here/debug" "$here/debug.c"
export FLOWFD_BACKEND=fallback
for mistake in 1 2 3 6; do
	tap_is "$("$here/debug" $mistake 2>&1 | grep -o "is blocking, and is added")" \
		"is blocking, and is added" "mistake $mistake: a blocking file"
done
for mistake in 4 5; do
	tap_is "$("$here/debug" $mistake 2>&1 | grep -o "call flowfd_add() and flowfd_take()")" \
		"call flowfd_add() and flowfd_take()" "mistake $mistake: a count that is lost"
done
tap_ok "what is no mistake" "$here/debug" 0
unset FLOWFD_BACKEND

# A macro of the compiler says what the machine has.
less="-U__GCC_ATOMIC_LLONG_LOCK_FREE -D__GCC_ATOMIC_LLONG_LOCK_FREE=1"
# shellcheck disable=SC2086 # flags are separate words
made "$cc" $less -c -o "$here/less.o" "$here/main.c" 2>"$here/less"
tap_ok "refuses a machine without atomic instructions of 64 bits" \
	grep -q "atomic instructions of 64 bits" "$here/less"

# Only developers ask for -Werror: a compiler of another version may warn.
tap_is "$(env -u MAKEFLAGS -u WERROR -u CFLAGS -u CPPFLAGS make -n -C "$top" O="$here/user" |
	grep -o -e '-Wall' -e '-Werror' | sort -u)" "-Wall" "a user's compiler may warn"

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

tap_done
