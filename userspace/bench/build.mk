# SPDX-License-Identifier: GPL-2.0-only
# flowfd-bench, and the script that makes a page of its result.

bench_headers := jansson.h liburing.h
bench_missing := $(strip $(foreach header,$(bench_headers),\
	$(shell $(CC) $(CPPFLAGS) $(CFLAGS) -E -include $(header) -x c /dev/null \
		>/dev/null 2>&1 || echo $(header))))
ifeq ($(BENCH),no)
else ifeq ($(bench_missing),)
PROGRAMS += $(O)/flowfd-bench $(O)/flowfd-bench-report
else ifeq ($(filter clean,$(MAKECMDGOALS)),)
$(warning flowfd-bench is left out, for want of $(bench_missing) \
	(Debian: libjansson-dev, liburing-dev))
endif

bench_objects := $(patsubst %.c,$(O)/%.o,$(wildcard bench/*.c))
OBJECTS += $(bench_objects)

$(bench_objects): PART_CFLAGS := -pthread

$(O)/flowfd-bench: $(bench_objects) $(O)/libflowfd.a
	$(link) -pthread -ljansson -luring -lm

# One file for Python with all modules. It must be reproducible bit by bit, so it is not
# made by zipapp, which stores times and the order of the directory.
bench_modules := $(sort $(wildcard bench/report/*.py))
$(O)/flowfd-bench-report: $(bench_modules)
	rm -rf $(O)/report
	install -D -m 644 -t $(O)/report $^
	cd $(O)/report && touch -d '2000-01-01 UTC' $(notdir $^) && \
		TZ=UTC0 python3 -m zipfile -c report.zip $(notdir $^)
	{ echo '#!/usr/bin/python3'; cat $(O)/report/report.zip; } > $@
	chmod +x $@
