/* SPDX-License-Identifier: MIT */
#ifndef FLOWFD_PRELOAD_EXPORT_H
#define FLOWFD_PRELOAD_EXPORT_H

/* Functions that replace those of libraries; all others of the shim are hidden. */
#define EXPORT __attribute__((visibility("default")))

/*
 * Gives @function this name and version, in the place of its own name. It replaces a
 * library's function for those that were linked with that version; with "@" and a version
 * that is not the first of versions.map, not for those that refer to no version.
 * A function has one version: clang's assembler refuses more. EXPORT_ALIAS() gives it
 * another name for another version.
 */
#define EXPORT_VERSION(function, version) \
	__asm__(".symver " #function ", " version ", remove")

#define EXPORT_ALIAS(name, function) \
	EXPORT extern __typeof__(function) name __attribute__((alias(#function)))

#endif /* FLOWFD_PRELOAD_EXPORT_H */
