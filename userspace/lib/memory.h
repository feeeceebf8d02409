/* SPDX-License-Identifier: MIT */
/* Memory for the files of the library. errno stays as it is. */
#ifndef FLOWFD_LIB_MEMORY_H
#define FLOWFD_LIB_MEMORY_H

#include <stddef.h>
#include <sys/types.h>

/**
 * flowfd__map - map shared memory
 * @at: receives the address
 * @size: bytes
 * @protection: PROT_* of mmap(2)
 * @fd: file to map; -1: memory of this process and its children
 * @offset: in the file, in bytes
 *
 * Returns 0 or a negative errno.
 */
int flowfd__map(void **at, size_t size, int protection, int fd, off_t offset);

/**
 * flowfd__memfd - make memory that processes share, whose size is sealed
 * @size: bytes
 * @flags: MFD_CLOEXEC or 0
 *
 * Returns a descriptor or a negative errno.
 */
int flowfd__memfd(size_t size, unsigned int flags);

/**
 * flowfd__check_memfd - whether a file is memory that keeps its size and seals
 * @fd: from anywhere
 * @size: bytes that it must have
 *
 * Returns 0, -EBADF or -ENOTTY.
 */
int flowfd__check_memfd(int fd, size_t size);

/**
 * flowfd__move - move memory
 * @from: one mapping, which is gone afterwards
 * @size: bytes
 * @to: what is mapped there is replaced
 *
 * Returns 0 or a negative errno: then @from is as it was, and there may be a hole at @to,
 * or what another thread has mapped in it.
 */
int flowfd__move(void *from, size_t size, void *to);

/**
 * flowfd__map_wiped_on_fork - map private memory that a child finds zeroed
 * @at: receives the address
 * @size: bytes
 *
 * Returns 0 or a negative errno.
 */
int flowfd__map_wiped_on_fork(void **at, size_t size);

/** flowfd__protect - set what can be done with memory; it stays as it was on failure */
void flowfd__protect(void *at, size_t size, int protection);

/** flowfd__unmap - unmap memory */
void flowfd__unmap(void *at, size_t size);

#endif /* FLOWFD_LIB_MEMORY_H */
