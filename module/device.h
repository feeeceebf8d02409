/* SPDX-License-Identifier: GPL-2.0-only */
/* The device node. */
#ifndef FLOWFD_DEVICE_H
#define FLOWFD_DEVICE_H

int flowfd_device_init(void);
void flowfd_device_exit(void);

#endif /* FLOWFD_DEVICE_H */
