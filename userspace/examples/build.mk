# SPDX-License-Identifier: MIT
# The programs of the manual; built to check that they compile.

example_sources := $(wildcard examples/*.c)
example_objects := $(example_sources:%.c=$(O)/%.o)
example_programs := $(example_sources:%.c=$(O)/%)

OBJECTS += $(example_objects)
EXTRAS += $(example_programs)

.PHONY: examples
examples: $(example_programs)

$(example_programs): $(O)/examples/%: $(O)/examples/%.o $(O)/libflowfd.a
	$(link) -pthread
