# SPDX-License-Identifier: MIT
# The shim that flowfd-run preloads.

preload_objects := $(patsubst %.c,$(O)/%.o,$(wildcard preload/*.c))
OBJECTS += $(preload_objects)

# Without _FORTIFY_SOURCE, which would call functions that only glibc has, such as
# __snprintf_chk(): programs of other C libraries are run with the shim, too.
# Without outline atomics, which arm64 has by default, and which call glibc's __getauxval().
$(preload_objects): PART_CFLAGS := -fPIC -fvisibility=hidden -U_FORTIFY_SOURCE \
	$(if $(filter aarch64%,$(shell $(CC) -dumpmachine)),-mno-outline-atomics)

# Bound when it is loaded: lazy binding takes up to 3 KB of stack at the first call of a
# function.
$(O)/libflowfd-preload.so: $(preload_objects)
	$(link) -shared -Wl,-z,defs -Wl,-z,now -Wl,-soname,$(@F)
