# SPDX-License-Identifier: GPL-2.0-only
# The simulator, docs/simulator.md: the module's own files and some of libflowfd's, compiled
# for user space. Included by userspace/tests/build.mk; SIM_SANITIZE= makes it fast, and
# SIM_TOP is another copy of the tree.

SIM := ../selftests/sim
SIM_TOP ?= ..
SIM_SANITIZE ?= $(SANITIZE)

# All files but those for which a history has no use: pages, init, closes of files.
sim_left_out := main device balance share trace memory objects closing watch% repoll post
sim_module := $(filter-out $(sim_left_out:%=$(SIM_TOP)/module/%.c), \
		$(wildcard $(SIM_TOP)/module/*.c))
sim_library := transfer doorbell eventfd unpolled doze words
sim_own := $(filter-out program harvest,$(patsubst $(SIM)/%.c,%,$(wildcard $(SIM)/*.c)))

sim_out := $(O)/tests/sim.d
sim_objects := $(sim_module:$(SIM_TOP)/module/%.c=$(sim_out)/module/%.o) \
	       $(sim_own:%=$(sim_out)/%.o) $(sim_out)/library.o
sim_compile = $(CC) -std=gnu11 -D_GNU_SOURCE -MMD -MP $(CFLAGS) $(SIM_SANITIZE) \
	      -iquote $(SIM) -I$(SIM_TOP)/uapi -c -o $@ $<
sim_warnings := -Wall -Wextra -Wno-unused-parameter

CHECKS += $(O)/tests/sim
OBJECTS += $(sim_objects) $(sim_library:%=$(sim_out)/library-%.o) \
	   $(sim_out)/program.o $(sim_out)/harvest.o

$(O)/tests/sim: $(sim_objects)
	$(CC) $(CFLAGS) $(LDFLAGS) $(SIM_SANITIZE) -o $@ $^

$(sim_out)/headers: $(SIM)/headers $(wildcard $(SIM_TOP)/module/*.[ch]) $(O)/flags
	$(SIM)/headers $(SIM_TOP)/module $(sim_out)/include
	touch $@

# The kernel's own build warns of these.
$(sim_out)/module/%.o: $(SIM_TOP)/module/%.c $(O)/flags | $(sim_out)/headers
	@mkdir -p $(@D)
	$(sim_compile) -w -I$(sim_out)/include

$(sim_out)/%.o: $(SIM)/%.c $(O)/flags | $(sim_out)/headers
	$(sim_compile) $(sim_warnings) $(WERROR) -iquote $(SIM_TOP)/module -I$(sim_out)/include

$(sim_out)/program.o $(sim_out)/harvest.o: $(sim_out)/%.o: $(SIM)/%.c $(O)/flags
	@mkdir -p $(@D)
	$(sim_compile) $(sim_warnings) $(WERROR) -I$(SIM_TOP)/userspace/include \
		-I$(SIM_TOP)/userspace/lib

$(sim_out)/library-%.o: $(SIM_TOP)/userspace/lib/%.c $(O)/flags
	@mkdir -p $(@D)
	$(sim_compile) $(sim_warnings) $(WERROR) -I$(SIM_TOP)/userspace/include -include $(SIM)/library.h

# Module and library have functions of the same name.
$(sim_out)/library.o: $(sim_library:%=$(sim_out)/library-%.o) $(sim_out)/program.o \
		$(sim_out)/harvest.o
	$(LD) -r -o $@ $^
	objcopy -w --keep-global-symbol='program_*' --keep-global-symbol='harvest_*' $@
