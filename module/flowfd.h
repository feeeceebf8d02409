/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the locks of the module nest, outermost first:
 *
 *	mutex of the bridges of a counter	adding and removing ends; their work item
 *	   |				does not take it
 *	   wait queue of an eventfd	a source adds to its counter under it
 *	      wait queue of a counter	never the other way round: a sink signals its eventfd
 *					without either
 *
 *	ring->lock	mutex: the watches of a ring. vfs_poll() is called under it,
 *	   |		so it may be held for long, but only users of the ring wait.
 *	   shard->lock	mutex of closing.c: which hooks end with which file, and who
 *	      |		may use its wait queues; released while they are left.
 *	      |		__fput() takes it too. Nothing under it waits for user space.
 *	      group	fsnotify's own
 *
 *	repoll->lock	mutex: a task or a worker polls all files of a ring and class
 *	   |		that are due. Only tasks wait for it, and only for the kernel's
 *	   |		own files, which do not wait, and those of procfs.
 *	   shard->lock	see above; not held while the file is polled
 *	   ring->repoll_lock	see below
 *
 *	ring->repoll_lock	a worker publishes what it polled, unless the watch
 *	   |			was removed meanwhile
 *	wait queue of a watched file, with interrupts off. A counter's wqh is one of
 *	   |		these, and the only one that is ours.
 *	   ring->sleeper_lock	tasks that sleep on a ring
 *	      |		a run queue's, of a task that is woken. Nothing else: no foreign
 *	      |		function is called with the lock of a watched file.
 *
 *	ring->wqh	pollers of a ring. A work item calls them under it, and they take
 *	   |		the locks of epoll, io_uring and AIO; if these signal an eventfd
 *	   |		that the ring watches, that one's lock and what is below.
 *
 * A wait queue's lock is taken under the mutexes. Nothing sleeps or accesses user memory
 * under it. User memory is not accessed under the mutexes either.
 *
 * CONTRIBUTING.md shows which file calls which. A file calls only what is below it.
 */
#ifndef FLOWFD_PRIVATE_H
#define FLOWFD_PRIVATE_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "../uapi/linux/flowfd.h"

/*
 * The kernel's atomic operations must work against those of programs, and its memory be
 * theirs. On 32-bit kernels those on u64 take locks, and so do all on PA-RISC.
 */
#define MAPPED_IS_POSSIBLE (IS_ENABLED(CONFIG_64BIT) && !IS_ENABLED(CONFIG_PARISC))

#endif /* FLOWFD_PRIVATE_H */
