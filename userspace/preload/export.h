/* SPDX-License-Identifier: MIT */
#ifndef FLOWFD_PRELOAD_EXPORT_H
#define FLOWFD_PRELOAD_EXPORT_H

/* Functions that replace those of libraries; all others of the shim are hidden. */
#define EXPORT __attribute__((visibility("default")))

/*
 * Gives @function this name and version alone. It replaces a library's function for those
 * that were linked with that version; "@": not for those that refer to no version.
 */
#define EXPORT_VERSION(function, version) \
	__asm__(".symver " #function ", " version ", remove")

#endif /* FLOWFD_PRELOAD_EXPORT_H */
