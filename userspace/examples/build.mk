# SPDX-License-Identifier: MIT
# The programs of the manual, and an HTTP server; built to check that they compile.

example_sources := $(wildcard examples/*.c)
example_objects := $(example_sources:%.c=$(O)/%.o)
example_programs := $(example_sources:%.c=$(O)/%)

# The server has io_uring if liburing is installed; http_uring= leaves it out.
http_uring := $(shell $(CC) -E -include liburing.h -x c /dev/null >/dev/null 2>&1 \
		&& echo -luring)
http_sources := $(filter-out $(if $(http_uring),,%/loop-uring.c), \
			     $(wildcard examples/http/*.c))
http_objects := $(http_sources:%.c=$(O)/%.o)
http_server := $(O)/examples/http/server

OBJECTS += $(example_objects) $(http_objects)
EXTRAS += $(example_programs) $(http_server)

.PHONY: examples
examples: $(example_programs) $(http_server)

$(example_programs): $(O)/examples/%: $(O)/examples/%.o $(O)/libflowfd.a
	$(link) -pthread

$(O)/examples/http/server.o: PART_CFLAGS := \
	$(if $(http_uring),-DHAVE_LIBURING)

$(http_server): $(http_objects) $(O)/libflowfd.a
	$(link) $(http_uring)
