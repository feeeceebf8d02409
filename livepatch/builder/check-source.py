# SPDX-License-Identifier: GPL-2.0-only
"""check-source.py VMLINUX OBJECT...: is this the source of the kernel?

The objects are compiled from the source as it is, without the patches. Each of their
functions must have the same instructions as one of that name in vmlinux, other than operands
that relocations fill in. Then source, config, and compiler are those of the kernel, as far as
these functions can tell. Those of the kernel's start and end are not compared. Prints nothing
if all is well.
"""
import struct
import sys

RELA, SYMTAB, FUNCTION = 4, 2, 2
# Types of relocations, and the size of the operand that each fills in.
CALL, NOP = 0xE8, b"\x0f\x1f\x44\x00\x00"
SIZES = {1: 8, 2: 4, 4: 4, 9: 4, 10: 4, 11: 4, 24: 8, 41: 4, 42: 4}


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        start, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3A)
        # name, type, flags, address, offset, size, link, info
        self.sections = [struct.unpack_from("<IIQQQQII", self.data, start + i * size)
                         for i in range(count)]
        self.names = self.sections[names][4]
        self.functions = {}
        for section in self.sections:
            if section[1] == SYMTAB:
                self.read_symbols(section)

    def read_symbols(self, table):
        strings = self.sections[table[6]][4]
        for at in range(table[4], table[4] + table[5], 24):
            name, info, _, section, value, size = struct.unpack_from(
                "<IBBHQQ", self.data, at)
            if info & 15 == FUNCTION and 0 < section < len(self.sections):
                end = self.data.index(b"\0", strings + name)
                self.functions.setdefault(
                    self.data[strings + name:end].decode(), []).append(
                        (section, value, size))

    def code(self, place):
        section, value, size = place
        _, _, _, address, offset = self.sections[section][:5]
        start = offset + value - address
        return bytearray(self.data[start:start + size])

    def operands(self, place):
        """(offset in the function, size) of what relocations fill in"""
        section, value, size = place
        for s in self.sections:
            if s[1] == RELA and s[7] == section:
                for at in range(s[4], s[4] + s[5], 24):
                    where, info = struct.unpack_from("<QQ", self.data, at)
                    if value <= where < value + size and info & 0xFFFFFFFF:
                        yield where - value, SIZES.get(info & 0xFFFFFFFF, 8)

    def name(self, index):
        return self.data[self.names + self.sections[index][0]:].split(b"\0", 1)[0].decode()


def same(unit, place, kernel, there):
    ours, theirs = unit.code(place), kernel.code(there)
    if len(ours) != len(theirs):
        return False
    for start, size in unit.operands(place):
        ours[start:start + size] = theirs[start:start + size]
        # The kernel has a nop for the tracer's call, if objtool did not make one here.
        if ours[start - 1] == CALL and theirs[start - 1:start + 4] == NOP:
            ours[start - 1] = theirs[start - 1]
    return ours == theirs


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    kernel = Elf(sys.argv[1])
    compared = bad = 0
    for unit in map(Elf, sys.argv[2:]):
        for name, places in sorted(unit.functions.items()):
            for place in places:
                if unit.name(place[0]).startswith((".init", ".exit")):
                    continue
                compared += 1
                if not any(same(unit, place, kernel, there)
                           for there in kernel.functions.get(name, [])):
                    print("%s: not as in the kernel" % name)
                    bad = 1
    if not compared:
        sys.exit("nothing to compare")
    sys.exit(bad)


main()
