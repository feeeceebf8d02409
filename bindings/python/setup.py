# SPDX-License-Identifier: MIT
"""The extension module has libflowfd in it: a wheel needs nothing else. c/ has the sources of
the library: links in a checkout, copies in what setuptools makes of it."""

import glob
import re

from setuptools import Extension, setup

with open("c/VERSION") as text:
    VERSION = re.search('^PACKAGE_VERSION="(.*)"$', text.read(), re.MULTILINE).group(1)

setup(
    version=VERSION,
    ext_modules=[
        Extension(
            "flowfd._flowfd",
            ["flowfd/_flowfd.c", *sorted(glob.glob("c/lib/*.c"))],
            depends=glob.glob("c/*/*.h") + glob.glob("c/uapi/linux/*.h"),
            include_dirs=["c/include", "c/uapi"],
            define_macros=[("_GNU_SOURCE", None), ("FLOWFD_VERSION", f'"{VERSION}"')],
            extra_compile_args=["-std=gnu11", "-O2", "-fvisibility=hidden"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
