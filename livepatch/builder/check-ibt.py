# SPDX-License-Identifier: GPL-2.0-only
"""check-ibt.py MODULE VMLINUX: could this module run on a processor with IBT?

With indirect branch tracking, an indirect call that does not land on endbr64 stops
the kernel. So each function whose address the module takes must begin with endbr64,
whether it is in the module or in the kernel. In the kernel it must also keep it: at
boot the kernel overwrites those that .ibt_endbr_seal lists. And a patched function
must begin as the kernel's function of that name does. Prints nothing if all is well.
"""
import mmap
import re
import struct
import sys

ENDBR64 = b"\xf3\x0f\x1e\xfa"
ALLOC, EXECUTABLE = 2, 4
RELA, SYMTAB = 4, 2
FUNCTION = 2
UNDEFINED, LIVEPATCH = 0, 0xFF20  # sections of the kernel's symbols
NONE = 0  # moved by klp-build to the livepatch's own relocations
ABSOLUTE, RELATIVE = {1, 10, 11}, {2, 4}

# These list instructions that the kernel patches or looks up; none is called.
PLACES = re.compile(r"\.orc_|__mcount_loc|\.return_sites|\.retpoline_sites|"
                    r"\.call_sites|\.altinstr|__bug_table|\.static_call_sites|"
                    r"__jump_table|__ex_table|\.smp_locks|\.ibt_endbr_seal|"
                    r"\.parainstructions|__patchable_function_entries|"
                    r"__klp_relocs\.")


class Elf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        offset, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3A)
        self.sections = []
        for i in range(count):
            s = dict(zip(("name", "type", "flags", "address", "offset", "size",
                          "link", "info"), struct.unpack_from(
                              "<IIQQQQII", self.data, offset + i * size)))
            self.sections.append(s)
        for s in self.sections:
            s["name"] = self.string(self.sections[names], s["name"])
        table = next(s for s in self.sections if s["type"] == SYMTAB)
        strings = self.sections[table["link"]]
        self.symbols = []
        for at in range(table["offset"], table["offset"] + table["size"], 24):
            name, info, _, section, value, _ = struct.unpack_from(
                "<IBBHQQ", self.data, at)
            self.symbols.append((self.string(strings, name), info & 15,
                                 section, value))

    def string(self, section, at):
        start = section["offset"] + at
        return self.data[start:self.data.find(b"\0", start)].decode()

    def is_code(self, index):
        return (0 < index < len(self.sections) and
                self.sections[index]["flags"] & EXECUTABLE)

    def has_endbr(self, index, at):
        start = self.sections[index]["offset"] + at
        return self.data[start:start + 4] == ENDBR64


def sealed(vmlinux):
    """Addresses whose endbr64 the kernel overwrites at boot."""
    for s in vmlinux.sections:
        if s["name"] == ".ibt_endbr_seal":
            for at in range(0, s["size"], 4):
                distance, = struct.unpack_from("<i", vmlinux.data,
                                               s["offset"] + at)
                yield s["address"] + at + distance


def is_branch(data, at):
    """Is this the operand of a call or a jump?"""
    return data[at - 1] in (0xE8, 0xE9) or (
        data[at - 2] == 0x0F and data[at - 1] & 0xF0 == 0x80)


def references(module):
    """(where, symbol, offset) of every address that is not the target of a branch"""
    for s in module.sections:
        target = module.sections[s["info"]] if s["type"] == RELA else None
        if (not target or not target["flags"] & ALLOC or
                PLACES.match(target["name"])):
            continue
        for at in range(s["offset"], s["offset"] + s["size"], 24):
            place, info, addend = struct.unpack_from("<QQq", module.data, at)
            kind, symbol = info & 0xFFFFFFFF, module.symbols[info >> 32]
            if kind == NONE:
                continue
            where = "%s+%#x" % (target["name"], place)
            if kind in RELATIVE:
                if target["flags"] & EXECUTABLE and is_branch(
                        module.data, target["offset"] + place):
                    continue
                addend += 4
            elif kind not in ABSOLUTE:
                sys.exit("%s: relocation type %d is not known" % (where, kind))
            yield where, symbol, addend


def errors(module, vmlinux):
    kernel = {}
    for name, kind, section, value in vmlinux.symbols:
        if kind == FUNCTION and vmlinux.is_code(section):
            at = value - vmlinux.sections[section]["address"]
            kernel.setdefault(name, []).append(
                (vmlinux.has_endbr(section, at), value))
    seals = set(sealed(vmlinux))
    if not seals:
        yield "the kernel has no .ibt_endbr_seal: is it built for IBT?"

    for where, (name, _, section, value), addend in references(module):
        if module.is_code(section):
            if not module.has_endbr(section, value + addend):
                place = ((name, addend) if name else
                         (module.sections[section]["name"], value + addend))
                yield "%s refers to %s+%#x of the module: no endbr64" % (
                    where, *place)
        elif section in (UNDEFINED, LIVEPATCH):
            # .klp.sym.vmlinux.NAME,POSITION
            plain = re.sub(r"^\.klp\.sym\.vmlinux\.(.*),\d+$", r"\1", name)
            for endbr, address in kernel.get(plain, []):
                if not endbr or address in seals:
                    yield "%s refers to %s of the kernel: no endbr64" % (
                        where, plain)

    for name, kind, section, value in module.symbols:
        if kind == FUNCTION and module.is_code(section) and name in kernel:
            if all(endbr != module.has_endbr(section, value)
                   for endbr, _ in kernel[name]):
                yield "%s does not begin as the kernel's own does" % name


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = list(errors(Elf(sys.argv[1]), Elf(sys.argv[2])))
    for error in found:
        print(error)
    sys.exit(1 if found else 0)


main()
