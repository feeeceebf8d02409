# SPDX-License-Identifier: GPL-2.0-only
# flowfd-bench, and the script that makes a page of its result.

PROGRAMS += $(O)/flowfd-bench $(O)/flowfd-bench-report

bench_objects := $(patsubst %.c,$(O)/%.o,$(wildcard bench/*.c))
OBJECTS += $(bench_objects)

$(bench_objects): PART_CFLAGS := -pthread

$(O)/flowfd-bench: $(bench_objects) $(O)/libflowfd.a
	$(link) -pthread

$(O)/flowfd-bench-report: bench/report.py
	@mkdir -p $(@D)
	install -m 755 $< $@
