/* SPDX-License-Identifier: MIT */
/* An executable or shared library that is loaded, and its symbols. */
#ifndef FLOWFD_PRELOAD_OBJECT_H
#define FLOWFD_PRELOAD_OBJECT_H

#include <link.h>
#include <stdint.h>

/**
 * struct object - where a loaded file has what the dynamic linker reads
 * @name: its base name; empty for the executable
 * @base: what addresses in the file are relative to
 * @dynamic: its dynamic section, NULL: it has none
 * @strings: names of its symbols and libraries
 * @symbols: that it defines and uses
 * @gnu_hash: finds a symbol by name; NULL: it has none
 * @sysv_hash: the same in the older format; NULL: it has none
 */
struct object {
	const char *name;
	ElfW(Addr) base;
	const ElfW(Dyn) *dynamic;
	const char *strings;
	const ElfW(Sym) *symbols;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
};

/** object_read - fill in @object from what dl_iterate_phdr(3) passes */
void object_read(struct object *object, const struct dl_phdr_info *info);

/** object_function - its function of this name, in any version; NULL: there is none */
void *object_function(const struct object *object, const char *name);

#endif /* FLOWFD_PRELOAD_OBJECT_H */
