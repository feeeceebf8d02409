# SPDX-License-Identifier: MIT
# The command-line tools.

PROGRAMS += $(O)/flowfd-run

flowfd_run_objects := $(O)/tools/flowfd-run.o $(O)/preload/settings.o \
		      $(O)/preload/glob.o
OBJECTS += $(O)/tools/flowfd-run.o

$(O)/tools/flowfd-run.o: PART_CFLAGS = \
	-DPRELOAD_DIR='"$(LIBDIR)/flowfd"'

$(O)/flowfd-run: $(flowfd_run_objects) $(O)/libflowfd.a
	$(link)

PROGRAMS += $(O)/flowfdctl

flowfdctl_objects := $(patsubst %.c,$(O)/%.o,$(wildcard tools/flowfdctl/*.c))
OBJECTS += $(flowfdctl_objects)

$(O)/flowfdctl: $(flowfdctl_objects) $(O)/libflowfd.a
	$(link)
