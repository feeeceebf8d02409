#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# check-ibt.sh: check-ibt.py accepts a module that is built for IBT, and says what is
# wrong with others. Prints TAP.
set -u

. selftests/tap.sh
check=$PWD/livepatch/builder/check-ibt.py
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

# says WANTED WHAT: compares the output and status of check-ibt.py for the module
says()
{
	tap_is "$(python3 "$check" module.o kernel 2>&1; echo "status $?")" "$1" "$2"
}

# is WANTED WHAT OPTION...: the same for a module that is built with these options
is()
{
	"${cc[@]}" "${@:3}" -r -nostdlib -o module.o module.c own.c
	says "$1" "$2"
}

# In a livepatch, a symbol that the kernel does not export has another name and the
# section index SHN_LIVEPATCH.
as_livepatch()
{
	objcopy --redefine-sym 'sealed=.klp.sym.vmlinux.sealed,0' module.o
	python3 - <<'END'
import struct
data = bytearray(open("module.o", "rb").read())
sections, = struct.unpack_from("<Q", data, 0x28)
count, = struct.unpack_from("<H", data, 0x3C)
for section in range(sections, sections + 64 * count, 64):
    kind, = struct.unpack_from("<I", data, section + 4)
    start, size = struct.unpack_from("<QQ", data, section + 24)
    if kind == 2:
        for symbol in range(start + 24, start + size, 24):
            if data[symbol + 6:symbol + 8] == b"\0\0":
                data[symbol + 6:symbol + 8] = b"\x20\xff"
open("module.o", "wb").write(data)
END
}

is "status 0" "built for IBT" -fcf-protection=branch
is ".rodata+0x0 refers to own+0x0 of the module: no endbr64
.rodata+0x8 refers to patched+0x0 of the module: no endbr64
patched does not begin as the kernel's own does
status 1" "not built for IBT" -fcf-protection=none
sed -i 's/, kept }/, sealed }/' module.c
is ".rodata+0x10 refers to sealed of the kernel: no endbr64
status 1" "the kernel's endbr64 goes at boot" -fcf-protection=branch
as_livepatch
says ".rodata+0x10 refers to sealed of the kernel: no endbr64
status 1" "the kernel's endbr64 goes at boot, in a livepatch"
sed -i 's/, sealed }/ }/' module.c
echo 'asm(".globl own; .type own, @function; own: ret");' > own.c
is ".rodata+0x0 refers to own+0x0 of the module: no endbr64
status 1" "a function in assembly" -fcf-protection=branch
tap_done
