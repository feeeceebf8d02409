// SPDX-License-Identifier: MIT
/*
 * Reads the dynamic section of a loaded file. dlsym(3) would do that, too, but it
 * takes the lock that dlopen(3) holds while constructors run.
 */
#include <stddef.h>
#include <string.h>

#include "preload/caller.h"
#include "preload/object.h"

/* glibc stores addresses in most dynamic sections, musl leaves them relative. */
static const void *pointer(const struct object *object, const ElfW(Dyn) *entry)
{
	ElfW(Addr) address = entry->d_un.d_ptr;

	return (const void *)(address < object->base ? object->base + address : address);
}

static const ElfW(Dyn) *find_dynamic(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	return NULL;
}

void object_read(struct object *object, const struct dl_phdr_info *info)
{
	*object = (struct object){
		.name = base_name(info->dlpi_name),
		.base = info->dlpi_addr,
		.dynamic = find_dynamic(info),
	};
	if (!object->dynamic)
		return;
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_STRTAB)
			object->strings = pointer(object, entry);
		else if (entry->d_tag == DT_SYMTAB)
			object->symbols = pointer(object, entry);
		else if (entry->d_tag == DT_GNU_HASH)
			object->gnu_hash = pointer(object, entry);
		else if (entry->d_tag == DT_HASH)
			object->sysv_hash = pointer(object, entry);
	}
}

/* Returns the function if symbol @i is one, is defined and has this name. */
static void *function_at(const struct object *object, uint32_t i, const char *name)
{
	const ElfW(Sym) *symbol = &object->symbols[i];
	int type = ELF64_ST_TYPE(symbol->st_info); /* the same for 32 bits */

	if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE) ||
	    strcmp(object->strings + symbol->st_name, name) != 0)
		return NULL;
	return (void *)(object->base + symbol->st_value);
}

/* The table: 4 words, a Bloom filter, the buckets, a word for each defined symbol. */
static void *find_by_gnu_hash(const struct object *object, const char *name)
{
	const uint32_t *table = object->gnu_hash;
	uint32_t buckets = table[0];
	uint32_t first = table[1];
	const uint32_t *bucket = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = 5381;
	void *function;

	if (!buckets)
		return NULL;
	for (const char *c = name; *c; c++)
		hash = 33 * hash + (unsigned char)*c;
	for (uint32_t i = bucket[hash % buckets]; i >= first; i++) {
		uint32_t found = chain[i - first];

		/* The lowest bit marks the end of a bucket. */
		function = (found ^ hash) >> 1 ? NULL : function_at(object, i, name);
		if (function || found & 1)
			return function;
	}
	return NULL;
}

/* The table: 2 words, the buckets, a word for each symbol, which is the next one. */
static void *find_by_sysv_hash(const struct object *object, const char *name)
{
	const uint32_t *table = object->sysv_hash;
	const uint32_t *bucket = table + 2;
	const uint32_t *next = bucket + table[0];
	uint32_t hash = 0;
	void *function = NULL;

	if (!table[0])
		return NULL;
	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	for (uint32_t i = bucket[hash % table[0]]; i && !function; i = next[i])
		function = function_at(object, i, name);
	return function;
}

void *object_function(const struct object *object, const char *name)
{
	if (!object->strings || !object->symbols)
		return NULL;
	if (object->gnu_hash)
		return find_by_gnu_hash(object, name);
	return object->sysv_hash ? find_by_sysv_hash(object, name) : NULL;
}
