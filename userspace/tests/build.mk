# SPDX-License-Identifier: GPL-2.0-only
# Host tests, which need no module: every tests/*.c is a program, and every
# tests/*.sh a script, that prints TAP. Tests named guest-* are for the virtual machine, as
# they can break a machine: "check" only builds them, except those that do without the
# module what needs none.

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

# Test programs run the code under sanitizers ...
test_sources := $(filter-out tests/eventfd.c tests/doorbell.c \
			tests/ring-steps.c,$(wildcard tests/*.c))
test_programs := $(test_sources:%.c=$(O)/%)
test_objects := $(test_sources:%.c=$(O)/%.o)
sanitized := $(patsubst %.c,$(O)/tests/%.o,$(wildcard lib/*.c) \
			preload/glob.c preload/settings.c \
			$(addprefix tools/flowfdctl/, \
				fields.c json.c kernel.c metrics.c objects.c parse.c \
				table.c text.c))
# ... except the one that runs under the shim, which must be loaded before them, and
# those that would take too many steps.
plain_test := $(O)/tests/eventfd
stepped_tests := $(O)/tests/doorbell $(O)/tests/ring-steps
guest_programs := $(O)/tests/guest-ring $(O)/tests/guest-post

# 32-bit callers of the library, if a compiler can make them.
CC32_aarch64 := arm-linux-gnueabihf-gcc -static
CC32_s390x := $(CC) -m31
CC32 ?= $(or $(CC32_$(shell uname -m)),$(CC) -m32)
ifneq ($(shell printf '\043include <stdint.h>\nint main(void) { return 0; }\n' | \
	$(CC32) -x c -o /dev/null - 2>/dev/null && echo yes),)
guest_programs += $(O)/tests/guest-ring32 $(O)/tests/guest-post32
endif

# Programs that scripts run, also in the virtual machine.
test_tools := $(O)/tests/eventfds $(O)/tests/apart $(O)/tests/libflowfd-test.so \
	      $(O)/tests/corners $(O)/tests/opener $(O)/tests/signalled \
	      $(O)/tests/libflowfd-older.so $(O)/tests/libflowfd-constructor.so \
	      $(O)/tests/traced $(O)/tests/clients
test_tool_objects := $(patsubst %,$(O)/tests/programs/%.o,eventfds maker corners opener \
			signalled constructor older traced clients)

# Programs that need another C library or sanitizers: if these are installed.
ifneq ($(shell command -v musl-gcc),)
test_tools += $(O)/tests/plain-musl
endif
ifneq ($(shell echo 'int main(void) { return 0; }' | $(CC) -fsanitize=address \
	-x c -o /dev/null - 2>/dev/null && echo yes),)
test_tools += $(O)/tests/plain-asan
endif
EXTRAS += $(test_tools) $(plain_test) $(stepped_tests)

OBJECTS += $(test_tool_objects) $(test_objects) $(sanitized) $(plain_test).o \
	   $(stepped_tests:=.o)
CHECKS += $(filter-out $(O)/tests/guest-%,$(test_programs)) $(plain_test) \
	  $(stepped_tests)
# On the host they test what needs no module.
CHECKS += $(O)/tests/guest-ring $(O)/tests/guest-post tests/guest-examples.sh
CHECKS += $(O)/tests/cplusplus
CHECKS += $(filter-out tests/guest-%,$(wildcard tests/*.sh))

$(test_objects) $(sanitized): PART_CFLAGS := $(SANITIZE) -I../module

$(sanitized): $(O)/tests/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(compile)

$(test_programs): $(O)/tests/%: $(O)/tests/%.o $(sanitized)
	$(link) $(SANITIZE) -pthread

# What the virtual machine runs: built where the host tests do not work, too.
.PHONY: guest-programs
guest-programs: all $(guest_programs) $(addprefix $(O)/tests/,counter open cplusplus)

check: guest-programs

$(O)/tests/guest-ring32 $(O)/tests/guest-post32: $(O)/tests/%32: tests/%.c \
			 tests/refuse.h tests/tap.h $(wildcard lib/*.[ch]) $(wildcard include/*.h) \
			 ../uapi/linux/flowfd.h $(O)/flags
	@mkdir -p $(@D)
	$(CC32) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.c,$^) -pthread

$(plain_test): $(plain_test).o
	$(link) -pthread

$(stepped_tests): %: %.o $(O)/libflowfd.a
	$(link) -pthread

$(O)/tests/traced: $(O)/tests/programs/traced.o $(O)/libflowfd.a
	$(link)

$(O)/tests/programs/maker.o: PART_CFLAGS := -fPIC
$(O)/tests/libflowfd-test.so: $(O)/tests/programs/maker.o
	$(link) -shared

# $ORIGIN, as the script that uses it may run under another path than the build.
$(O)/tests/eventfds: $(O)/tests/programs/eventfds.o $(O)/tests/libflowfd-test.so
	$(link) -L$(@D) -lflowfd-test -Wl,-rpath,'$$ORIGIN'

# Its code is far from its headers, as in Node.js and stress-ng.
$(O)/tests/apart: $(O)/tests/programs/eventfds.o $(O)/tests/libflowfd-test.so
	$(link) -L$(@D) -lflowfd-test -Wl,-rpath,'$$ORIGIN' -Wl,-Ttext=0x8000000

# Bound when it is loaded: lazy binding would use its stack.
$(O)/tests/corners: $(O)/tests/programs/corners.o
	$(link) -Wl,-z,now

$(O)/tests/opener $(O)/tests/signalled: $(O)/tests/%: $(O)/tests/programs/%.o
	$(link)

$(O)/tests/clients: $(O)/tests/programs/clients.o
	$(link)

$(O)/tests/programs/constructor.o: PART_CFLAGS := -fPIC
$(O)/tests/libflowfd-constructor.so: $(O)/tests/programs/constructor.o
	$(link) -shared -pthread

$(O)/tests/programs/older.o: PART_CFLAGS := -fPIC
$(O)/tests/libflowfd-older.so: $(O)/tests/programs/older.o
	$(link) -shared

$(O)/tests/plain-asan: tests/programs/plain.c $(O)/flags
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra $(WERROR) -fsanitize=address -o $@ $<

$(O)/tests/plain-musl: tests/programs/plain.c $(O)/flags
	@mkdir -p $(@D)
	musl-gcc -O2 -Wall -Wextra $(WERROR) -D_GNU_SOURCE -o $@ $<

# Library and tests built in the ways that give other code: each variant has objects of its
# own, with the flags of the project, so that these are compiled once.
variant_flags_debug := -DFLOWFD_DEBUG
variant_flags_m32 := -m32
variant_flags_tsan := -fsanitize=thread
variant_flags_msan := -fsanitize=memory
variant_tests_debug := ring post
variant_tests_m32 := ring mapped post doorbell overtake
variant_tests_msan := ring-epoll
variant_tests_tsan := ring mapped post overtake open ring-epoll

# able FLAGS: whether the compiler makes programs of the library with these flags. clang has
# no atomic instructions of 64 bits for i386 (flowfd-counter.h).
able = $(shell printf '\043%s\n' 'include <stdint.h>' \
	'if __GCC_ATOMIC_LLONG_LOCK_FREE != 2' error endif | \
	sed '$$a int main(void) { return 0; }' | \
	$(CC) $(1) -x c -o /dev/null - 2>/dev/null && echo yes)
# 32 bits have the code of all architectures except x86-64. ThreadSanitizer does not
# support the fence that the others use. MemorySanitizer is clang's.
variants := debug $(if $(call able,-m32),m32) \
	$(if $(filter x86_64,$(shell uname -m)),$(if $(call able,-fsanitize=thread),tsan)) \
	$(if $(call able,-fsanitize=memory),msan)

define variant
$(1)_library := $(patsubst %.c,$(O)/tests/$(1)/%.o,$(wildcard lib/*.c))
$(1)_tests := $(addprefix $(O)/tests/$(1)/,$(addsuffix .$(1),$(variant_tests_$(1))))
OBJECTS += $$($(1)_library) $$($(1)_tests:=.o)
$$($(1)_library): $(O)/tests/$(1)/%.o: %.c $(O)/flags
	@mkdir -p $$(@D)
	$$(compile) $(variant_flags_$(1))
$$($(1)_tests:=.o): $(O)/tests/$(1)/%.$(1).o: tests/%.c $(O)/flags
	@mkdir -p $$(@D)
	$$(compile) $(variant_flags_$(1))
$$($(1)_tests): %: %.o $$($(1)_library)
	$$(link) $(variant_flags_$(1)) -pthread
endef
$(foreach v,$(variants),$(eval $(call variant,$(v))))
CHECKS += $(foreach v,$(variants),$($(v)_tests))

# A C++ program that uses the shared library.
$(O)/tests/cplusplus: tests/cplusplus.cc $(wildcard include/*.h) \
			../uapi/linux/flowfd.h $(O)/libflowfd.so
	@mkdir -p $(@D)
	$(CXX) -Wall -Wextra -pedantic $(WERROR) -Iinclude -I../uapi $(CPPFLAGS) \
		$(CXXFLAGS) $(LDFLAGS) -o $@ $< \
		-L$(O) -lflowfd -Wl,-rpath,$(O)

include ../selftests/sim/build.mk
