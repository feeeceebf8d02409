# SPDX-License-Identifier: GPL-2.0-only
"""check-source.py VMLINUX OBJECT...: is this the source of the kernel?

The objects are compiled from the source as it is, without the patches. Each of their
functions must have the same instructions as one of that name in vmlinux, other than operands
that relocations fill in. Then source, config, and compiler are those of the kernel, as far as
these functions can tell. Those of the kernel's start and end are not compared. Prints nothing
if all is well.
"""
import sys

from elf import FUNCTION, Elf

# Types of relocations, and the size of the operand that each fills in.
SIZES = {1: 8, 2: 4, 4: 4, 9: 4, 10: 4, 11: 4, 24: 8, 41: 4, 42: 4}


def functions(elf):
    found = {}
    for s in elf.symbols:
        if s.kind == FUNCTION and 0 < s.section < len(elf.sections):
            found.setdefault(s.name, []).append(s)
    return found


def code(elf, function):
    return bytearray(elf.bytes(function.section, function.value, function.size))


def operands(elf, function):
    """(offset in the function, size) of what relocations fill in"""
    for _, at, kind, _, _ in elf.relocations(function.section):
        if kind and 0 <= at - function.value < function.size:
            yield at - function.value, SIZES.get(kind, 8)


def same(unit, function, kernel, there):
    ours, theirs = code(unit, function), code(kernel, there)
    if len(ours) != len(theirs):
        return False
    for start, size in operands(unit, function):
        ours[start:start + size] = theirs[start:start + size]
    return ours == theirs


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kernel = Elf(sys.argv[1])
    known = functions(kernel)
    compared = bad = 0
    for unit in map(Elf, sys.argv[2:]):
        for name, places in sorted(functions(unit).items()):
            for place in places:
                if unit.sections[place.section].name.startswith((".init", ".exit")):
                    continue
                compared += 1
                if not any(same(unit, place, kernel, there) for there in known.get(name, [])):
                    print("%s: not as in the kernel" % name)
                    bad = 1
    if not compared:
        sys.exit("nothing to compare")
    sys.exit(bad)


main()
