# SPDX-License-Identifier: MIT
# The shim that flowfd-run preloads.

preload_objects := $(patsubst %.c,$(O)/%.o,$(wildcard preload/*.c))
OBJECTS += $(preload_objects)

$(preload_objects): PART_CFLAGS := -fPIC -fvisibility=hidden

$(O)/libflowfd-preload.so: $(preload_objects)
	$(link) -shared -Wl,-soname,libflowfd-preload.so -Wl,-z,defs
