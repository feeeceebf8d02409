/* SPDX-License-Identifier: MIT */
#ifndef FLOWFD_PRELOAD_EXPORT_H
#define FLOWFD_PRELOAD_EXPORT_H

/* What programs call in the place of libc's; all else of the shim is hidden. */
#define EXPORT __attribute__((visibility("default")))

#endif /* FLOWFD_PRELOAD_EXPORT_H */
