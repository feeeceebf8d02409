/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that flowfd builds on, 6.1 and later. No
 * other file knows a kernel version. Each entry names the release that brought
 * the change, so that it can go when the oldest kernel does.
 *
 * Distributions backport. So an entry asks for a macro of the kernel's where there is
 * one, or for HAVE_name, which Kbuild sets if the headers declare it; for a version only
 * where the headers are the same before and after.
 */
#ifndef FLOWFD_COMPAT_H
#define FLOWFD_COMPAT_H

#include <linux/device/class.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify_backend.h>
#include <linux/hrtimer.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/version.h>

/*
 * 6.9: eventfd refuses writes of more than eight bytes. No header tells. Where that is
 * backported, a counter takes such a write as before, and selftests/buffers fails.
 */
static inline bool write_size_is_valid(size_t size)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	return size == sizeof(u64);
#else
	return size >= sizeof(u64);
#endif
}

/* 6.13: hrtimer_setup() replaces hrtimer_init(), which 6.15 removes. */
#ifndef HAVE_hrtimer_setup
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/*
 * 6.10: fsnotify_find_mark() takes the object instead of its connector, and
 * fsnotify_find_inode_mark() hides it.
 */
#ifndef HAVE_fsnotify_find_inode_mark
static inline struct fsnotify_mark *fsnotify_find_inode_mark(struct inode *inode,
							     struct fsnotify_group *group)
{
	return fsnotify_find_mark(&inode->i_fsnotify_marks, group);
}
#endif

/* 6.3: flags of a memory area are changed by functions. */
#ifndef HAVE_vm_flags_clear
static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.17: a workqueue that is not unbound says so. */
#ifndef HAVE_WQ_PERCPU
#define WQ_PERCPU 0
#endif

/*
 * 6.14, and stable 6.12: two bits say which events a file raises, where one said
 * that it raises none.
 */
static inline bool file_raises_close_event(const struct file *file)
{
#ifdef FMODE_FSNOTIFY_NONE
	return !FMODE_FSNOTIFY_NONE(file->f_mode);
#else
	return !(file->f_mode & FMODE_NONOTIFY);
#endif
}

/* 6.4: class_create() is a function, and is not told the module. */
static inline struct class *device_class_create(const char *name)
{
#ifdef class_create
	return class_create(THIS_MODULE, name);
#else
	return class_create(name);
#endif
}

/*
 * 6.8: a signal by the kernel adds 1 to an eventfd: the function takes no value, and
 * returns none.
 */
static inline void eventfd_signal_count(struct eventfd_ctx *eventfd, u64 count)
{
#ifdef HAVE_void_eventfd_signal
	eventfd_signal(eventfd);
#else
	eventfd_signal(eventfd, count);
#endif
}

/* 6.7: the memory of a file can be that of another one under RCU. Before, it is not. */
#ifndef HAVE_get_file_active
static inline struct file *get_file_active(struct file **where)
{
	struct file *file;

	rcu_read_lock();
	file = READ_ONCE(*where);
	if (file && !get_file_rcu(file))
		file = NULL;
	rcu_read_unlock();
	return file;
}
#endif

/* 6.8: receive_fd() stores the descriptor, too, if it is told where. */
static inline int receive_file(struct file *file, unsigned int flags)
{
#ifdef HAVE_receive_fd_to_user
	return receive_fd(file, NULL, flags);
#else
	return receive_fd(file, flags);
#endif
}

/* 6.18: binder in Rust has a file system of its own. */
#ifndef RUST_BINDERFS_SUPER_MAGIC
#define RUST_BINDERFS_SUPER_MAGIC 0x6c6f6f71
#endif

/* 6.9: descriptors of processes have a file system of their own. */
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

/* 6.2: the devnode callback of a class gets a const device. */
#ifdef HAVE_const_devnode
#define DEVNODE_CONST const
#else
#define DEVNODE_CONST
#endif

/*
 * A file that raises no event of fsnotify, be it opened, read, written or closed.
 * 6.14, and stable 6.12: with the other bit it would mean something else.
 */
static inline void file_raise_no_events(struct file *file)
{
#ifdef FMODE_FSNOTIFY_MASK
	file->f_mode &= ~FMODE_FSNOTIFY_MASK;
#endif
	file->f_mode |= FMODE_NONOTIFY;
}

#endif /* FLOWFD_COMPAT_H */
