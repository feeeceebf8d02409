# SPDX-License-Identifier: GPL-2.0-only
"""add-modinfo.py MODULE FIELD=VALUE...: adds fields that modinfo(8) shows.

objcopy would lose what it does not know of the section with a livepatch's relocations.
So the new .modinfo is appended to the file, and only the header of that section changes.
"""
import struct
import sys


def add(module, fields):
    sections, = struct.unpack_from("<Q", module, 0x28)
    size, count, names = struct.unpack_from("<HHH", module, 0x3A)
    table, = struct.unpack_from("<Q", module, sections + names * size + 24)
    for header in range(sections, sections + count * size, size):
        name, = struct.unpack_from("<I", module, header)
        start = table + name
        if module[start:start + 9] != b".modinfo\0":
            continue
        offset, length = struct.unpack_from("<QQ", module, header + 24)
        content = module[offset:offset + length]
        if content and content[-1]:
            content += b"\0"
        content += b"".join(field.encode() + b"\0" for field in fields)
        # After at least one zero, so that the first field begins there.
        module += bytes(8 - len(module) % 8)
        struct.pack_into("<QQ", module, header + 24, len(module), len(content))
        return module + content
    sys.exit("the module has no .modinfo")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as f:
        module = bytearray(f.read())
    module = add(module, sys.argv[2:])
    with open(sys.argv[1], "wb") as f:
        f.write(module)


main()
