#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check-ibt.sh: check-ibt.py passes a module that is built for IBT, and names what is
# wrong with others. TAP.
set -u

# shellcheck source-path=SCRIPTDIR source=../../userspace/tests/tap.sh
. userspace/tests/tap.sh
check=$PWD/livepatch/check-ibt.py
cd "$(mktemp -d)" || exit
cc=(gcc -O2 -fno-asynchronous-unwind-tables -fno-pic -mcmodel=kernel)

# A kernel with a function that keeps its endbr64 and one that loses it at boot.
cat > kernel.c <<'END'
void patched(void) { }
void kept(void) { }
void sealed(void) { }
asm(".pushsection .ibt_endbr_seal, \"a\"; .long sealed - .; .popsection");
END
"${cc[@]}" -fcf-protection=branch -nostdlib -static -Wl,-e0 -o kernel kernel.c

cat > module.c <<'END'
extern void kept(void), sealed(void);
void own(void);
void patched(void) { kept(); sealed(); own(); }
void (*const pointers[])(void) = { own, patched, kept };
END
cat > own.c <<'END'
void own(void) { }
END

# is WANTED WHAT OPTION...: what check-ibt.py says of a module that is built so
is()
{
	"${cc[@]}" "${@:3}" -r -nostdlib -o module.o module.c own.c
	tap_is "$(python3 "$check" module.o kernel 2>&1; echo "status $?")" "$1" "$2"
}

is "status 0" "built for IBT" -fcf-protection=branch
is ".rodata+0x0 refers to own+0x0 of the module: no endbr64
.rodata+0x8 refers to patched+0x0 of the module: no endbr64
patched does not begin as the kernel's own does
status 1" "not built for IBT" -fcf-protection=none
sed -i 's/, kept }/, sealed }/' module.c
is ".rodata+0x10 refers to sealed of the kernel: no endbr64
status 1" "the kernel's endbr64 goes at boot" -fcf-protection=branch
sed -i 's/, sealed }/ }/' module.c
echo 'asm(".globl own; .type own, @function; own: ret");' > own.c
is ".rodata+0x0 refers to own+0x0 of the module: no endbr64
status 1" "a function in assembly" -fcf-protection=branch
tap_done
