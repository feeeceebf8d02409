/* SPDX-License-Identifier: MIT */
/* /dev/flowfd as the library's own files use it. */
#ifndef FLOWFD_LIB_DEVICE_H
#define FLOWFD_LIB_DEVICE_H

#include <stddef.h>

/* Objects are compiled with hidden visibility; what the header has is public.
 */
#pragma GCC visibility push(default)
#include <flowfd.h>
#pragma GCC visibility pop

/**
 * device_open - open /dev/flowfd and see that its ABI is the library's
 * @query: receives the module's answer as far as it came
 *
 * Returns a close-on-exec descriptor or what flowfd_query() returns.
 */
int device_open(struct flowfd_query *query);

/** device_close - close @fd, which errno does not notice */
void device_close(int fd);

/** device_ioctl - ioctl(2) that returns -errno and leaves errno alone */
int device_ioctl(int fd, unsigned long request, void *argument);

#endif /* FLOWFD_LIB_DEVICE_H */
