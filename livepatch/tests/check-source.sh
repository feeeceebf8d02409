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

# is WANTED WHAT [FUNCTION...]: compares output and status for the object of kernel.c
is()
{
	"${cc[@]}" -c -o object.o kernel.c
	tap_is "$(python3 "$check" kernel object.o -- "${@:3}" 2>&1; echo "status $?")" \
		"$1" "$2"
}

is "status 0" "the same source" first second
is "third: 0 times in the objects, 0 in the kernel
status 1" "no such function" third
is "other: 0 times in the objects, 1 in the kernel
status 1" "a function of another object" other
sed -i 's/int a, b;/int a, c, b;/' kernel.c
is "first: other instructions from byte 6 on
second: other instructions from byte 2 on
status 1" "another layout of a structure" first second
sed -i 's/ + 1; }/ + other(t->a); }/' kernel.c
"${cc[@]}" -c -o object.o kernel.c
tap_ok "a longer function" eval \
	'python3 "$check" kernel object.o -- first | grep -q "^first: .* bytes, in the kernel "'
tap_done
