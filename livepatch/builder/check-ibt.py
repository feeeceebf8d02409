# SPDX-License-Identifier: GPL-2.0-only
"""check-ibt.py MODULE VMLINUX: could this module run on a processor with IBT?

With indirect branch tracking, an indirect call that does not land on endbr64 stops
the kernel. So each function whose address the module takes must begin with endbr64,
whether it is in the module or in the kernel. In the kernel it must also keep it: at
boot the kernel overwrites those that .ibt_endbr_seal lists. And a patched function
must begin as the kernel's function of that name does. Prints nothing if all is well.
"""
import re
import sys

from elf import FUNCTION, Elf

ENDBR64 = b"\xf3\x0f\x1e\xfa"
ALLOC, EXECUTABLE = 2, 4
UNDEFINED, LIVEPATCH = 0, 0xFF20  # sections of the kernel's symbols
NONE = 0  # moved by klp-build to the livepatch's own relocations
ABSOLUTE, RELATIVE = {1, 10, 11}, {2, 4}

# These list instructions that the kernel patches or looks up; none is called.
PLACES = re.compile(r"\.orc_|__mcount_loc|\.return_sites|\.retpoline_sites|"
                    r"\.call_sites|\.altinstr|__bug_table|\.static_call_sites|"
                    r"__jump_table|__ex_table|\.smp_locks|\.ibt_endbr_seal|"
                    r"\.parainstructions|__patchable_function_entries|"
                    r"__klp_relocs\.")


def is_code(elf, index):
    return 0 < index < len(elf.sections) and elf.sections[index].flags & EXECUTABLE


def has_endbr(elf, index, at):
    return elf.bytes(index, at, 4) == ENDBR64


def sealed(vmlinux):
    """Addresses whose endbr64 the kernel overwrites at boot."""
    for s in vmlinux.sections:
        if s.name == ".ibt_endbr_seal":
            for i, (distance,) in enumerate(vmlinux.entries(s, "<i")):
                yield s.address + 4 * i + distance


def is_branch(before):
    """Do these two bytes begin a call or a jump?"""
    return before[1] in (0xE8, 0xE9) or before[0] == 0x0F and before[1] & 0xF0 == 0x80


def references(module):
    """(where, symbol, offset) of every address that is not the target of a branch"""
    for index, place, kind, symbol, addend in module.relocations():
        target = module.sections[index]
        if not target.flags & ALLOC or PLACES.match(target.name) or kind == NONE:
            continue
        where = "%s+%#x" % (target.name, place)
        if kind in RELATIVE:
            if target.flags & EXECUTABLE and is_branch(module.bytes(index, place - 2, 2)):
                continue
            addend += 4
        elif kind not in ABSOLUTE:
            sys.exit("%s: relocation type %d is not known" % (where, kind))
        yield where, module.symbols[symbol], addend


def errors(module, vmlinux):
    kernel = {}
    for s in vmlinux.symbols:
        if s.kind == FUNCTION and is_code(vmlinux, s.section):
            kernel.setdefault(s.name, []).append(
                (has_endbr(vmlinux, s.section, s.value), s.value))
    seals = set(sealed(vmlinux))
    if not seals:
        yield "the kernel has no .ibt_endbr_seal: is it built for IBT?"

    for where, (name, _, section, value, _), addend in references(module):
        if is_code(module, section):
            if not has_endbr(module, section, value + addend):
                place = ((name, addend) if name else
                         (module.sections[section].name, value + addend))
                yield "%s refers to %s+%#x of the module: no endbr64" % (
                    where, *place)
        elif section in (UNDEFINED, LIVEPATCH):
            # .klp.sym.vmlinux.NAME,POSITION
            plain = re.sub(r"^\.klp\.sym\.vmlinux\.(.*),\d+$", r"\1", name)
            for endbr, address in kernel.get(plain, []):
                if not endbr or address in seals:
                    yield "%s refers to %s of the kernel: no endbr64" % (
                        where, plain)

    for name, kind, section, value, _ in module.symbols:
        if kind == FUNCTION and is_code(module, section) and name in kernel:
            if all(endbr != has_endbr(module, section, value)
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
