# SPDX-License-Identifier: MIT
# libflowfd, shared and static, and its files for pkg-config and CMake.

lib_objects := $(patsubst %.c,$(O)/%.o,$(wildcard lib/*.c))
OBJECTS += $(lib_objects)

$(lib_objects): PART_CFLAGS := -fPIC -fvisibility=hidden

$(O)/libflowfd.a: $(lib_objects)
	rm -f $@
	$(AR) rcs $@ $^

$(O)/libflowfd.so.1: $(lib_objects) lib/libflowfd.map
	$(link) -shared -Wl,-soname,libflowfd.so.1 -Wl,-z,defs \
		-Wl,--version-script,lib/libflowfd.map

$(O)/libflowfd.so: $(O)/libflowfd.so.1
	ln -sf libflowfd.so.1 $@

$(O)/libflowfd.pc: lib/libflowfd.pc.in
$(O)/flowfd-config.cmake: lib/flowfd-config.cmake.in
$(O)/flowfd-config-version.cmake: lib/flowfd-config-version.cmake.in
$(O)/libflowfd.pc $(O)/flowfd-config.cmake $(O)/flowfd-config-version.cmake: $(O)/flags
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $(filter %.in,$^) >$@
