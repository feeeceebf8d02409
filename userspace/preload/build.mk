# SPDX-License-Identifier: MIT
# The shim that flowfd-run preloads.

preload_objects := $(patsubst %.c,$(O)/%.o,$(wildcard preload/*.c))
OBJECTS += $(preload_objects)

# Programs of another C library are run with it, too: _FORTIFY_SOURCE would call
# functions that only glibc has, as __snprintf_chk().
PRELOAD_CFLAGS := -fPIC -fvisibility=hidden -U_FORTIFY_SOURCE
$(preload_objects): PART_CFLAGS := $(PRELOAD_CFLAGS)

# Bound when it is loaded: the dynamic linker takes up to 3 KB of stack to bind a
# function when it is called first.
PRELOAD_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,now
$(O)/libflowfd-preload.so: $(preload_objects)
	$(link) $(PRELOAD_LDFLAGS) -Wl,-soname,libflowfd-preload.so
