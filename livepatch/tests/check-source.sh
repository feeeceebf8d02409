#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check-source.sh: check-source.py accepts the objects that a kernel was linked from, and
# says which functions of others differ. Prints TAP.
set -u

. selftests/tap.sh
check=$PWD/livepatch/builder/check-source.py
cd "$(mktemp -d)" || exit
cc=(gcc -O2 -fno-pic -mcmodel=kernel)

cat > kernel.c <<'END'
extern int other(int);
struct thing { int a, b; };
int first(struct thing *t) { return other(t->b) + 1; }
int second(struct thing *t) { return t->b; }
END
echo 'int other(int x) { return x * 3; }' > other.c
"${cc[@]}" -nostdlib -static -Wl,-e0 -o kernel other.c kernel.c

# is WANTED WHAT: compares output and status for the object of kernel.c
is()
{
	"${cc[@]}" -c -o object.o kernel.c
	tap_is "$(python3 "$check" kernel object.o 2>&1; echo "status $?")" "$1" "$2"
}

cp kernel.c all.c
is "status 0" "the same source"
sed -i 's/) + 1/) + 2/' kernel.c
is "first: not as in the kernel
status 1" "another instruction"
cp all.c kernel.c
sed -i 's/int a, b;/int a, c, b;/' kernel.c
is "first: not as in the kernel
second: not as in the kernel
status 1" "another layout of a structure"
sed 's/int second/int third/' all.c > kernel.c
is "third: not as in the kernel
status 1" "a function that the kernel has not got"
sed 's/ + 1; }/ + other(t->a); }/' all.c > kernel.c
is "first: not as in the kernel
status 1" "a longer function"
echo 'int x;' > kernel.c
is "nothing to compare
status 1" "no function"
sed 's/^int first/__attribute__((section(".init.text"))) int first/; s/ + 1; }/ + 2; }/' all.c \
	> kernel.c
is "status 0" "one of the start is not compared"
tap_done
