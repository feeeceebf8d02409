/* SPDX-License-Identifier: MIT */
#ifndef FLOWFD_PRELOAD_EXPORT_H
#define FLOWFD_PRELOAD_EXPORT_H

/* Functions that replace those of libraries; all others of the shim are hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif /* FLOWFD_PRELOAD_EXPORT_H */
