# SPDX-License-Identifier: GPL-2.0-only
"""What check-ibt.py and check-source.py read of an ELF file of x86-64."""
import mmap
import struct
from collections import namedtuple

RELA, SYMTAB, FUNCTION = 4, 2, 2
Section = namedtuple("Section", "name type flags address offset size link info")
Symbol = namedtuple("Symbol", "name kind section value size")


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        start, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3A)
        self.sections = [Section._make(struct.unpack_from("<IIQQQQII", self.data, start + i * size))
                         for i in range(count)]
        names = self.sections[names]
        self.sections = [s._replace(name=self.string(names, s.name)) for s in self.sections]
        self.symbols = []
        for table in self.sections:
            if table.type == SYMTAB:
                for name, info, _, section, value, length in self.entries(table, "<IBBHQQ"):
                    self.symbols.append(Symbol(self.string(self.sections[table.link], name),
                                               info & 15, section, value, length))

    def entries(self, section, layout):
        return struct.iter_unpack(
            layout, self.data[section.offset:section.offset + section.size])

    def string(self, section, at):
        start = section.offset + at
        return self.data[start:self.data.find(b"\0", start)].decode()

    def bytes(self, index, at, size):
        """At an offset in a section, or at an address of a program."""
        s = self.sections[index]
        start = s.offset + at - s.address
        return self.data[start:start + size]

    def relocations(self, of=None):
        """(section that is changed, offset, type, number of the symbol, addend)"""
        for s in self.sections:
            if s.type == RELA and of in (None, s.info):
                for at, info, addend in self.entries(s, "<QQq"):
                    yield s.info, at, info & 0xFFFFFFFF, info >> 32, addend
