# SPDX-License-Identifier: GPL-2.0-only
"""check-source.py VMLINUX OBJECT... -- FUNCTION...: is this the source of the kernel?

The objects are compiled from the source as it is, without the patches. Each function must
be there once, and must have the same instructions as in vmlinux, other than operands that
relocations fill in. Then source, config, and compiler are those of the kernel, as far as
the patched functions can tell. Prints nothing if all is well.
"""
import struct
import sys

RELA, SYMTAB, FUNCTION = 4, 2, 2
# Types of relocations, and the size of the operand that each fills in.
SIZES = {1: 8, 2: 4, 4: 4, 9: 4, 10: 4, 11: 4, 24: 8, 41: 4, 42: 4}


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        start, = struct.unpack_from("<Q", self.data, 0x28)
        size, count = struct.unpack_from("<HH", self.data, 0x3A)
        # name, type, flags, address, offset, size, link, info
        self.sections = [struct.unpack_from("<IIQQQQII", self.data, start + i * size)
                         for i in range(count)]
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


def difference(kernel, objects, name):
    """What is wrong with a function, or None."""
    found = [(o, place) for o in objects for place in o.functions.get(name, [])]
    running = kernel.functions.get(name, [])
    if len(found) != 1 or len(running) != 1:
        return "%d times in the objects, %d in the kernel" % (len(found), len(running))
    unit, place = found[0]
    ours, theirs = unit.code(place), kernel.code(running[0])
    if len(ours) != len(theirs):
        return "%d bytes, in the kernel %d" % (len(ours), len(theirs))
    for start, size in unit.operands(place):
        ours[start:start + size] = theirs[start:start + size]
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    return None if at is None else "other instructions from byte %d on" % at


def main():
    if "--" not in sys.argv[2:]:
        sys.exit(__doc__)
    end = sys.argv.index("--")
    kernel = Elf(sys.argv[1])
    objects = [Elf(path) for path in sys.argv[2:end]]
    bad = 0
    for name in sys.argv[end + 1:]:
        what = difference(kernel, objects, name)
        if what:
            print("%s: %s" % (name, what))
            bad = 1
    sys.exit(bad)


main()
