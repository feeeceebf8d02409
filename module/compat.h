/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that flowfd builds on, 6.1 and later. No
 * other file knows a kernel version. Each entry names the release that brought
 * the change, so that it can go when the oldest kernel does.
 */
#ifndef FLOWFD_COMPAT_H
#define FLOWFD_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/version.h>

/* 6.9: eventfd refuses writes of more than eight bytes. */
static inline bool write_size_is_valid(size_t size)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	return size == sizeof(u64);
#else
	return size >= sizeof(u64);
#endif
}

/* 6.13: hrtimer_setup() replaces hrtimer_init(), which 6.15 removes. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* FLOWFD_COMPAT_H */
