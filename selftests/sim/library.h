/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Before the files of libflowfd that run here (-include): each access to shared memory is
 * a step, and system calls are those of program.c.
 */
#ifndef FLOWFD_SIM_LIBRARY_H
#define FLOWFD_SIM_LIBRARY_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* program.c: a step of a program, which may be its last. */
void program_step(void);
/* A word was exchanged, or added to: the only ways by which programs add and take. */
void program_exchanged(const void *word, uint64_t old, uint64_t new);
int *program_errno(void);
long program_call(long number, ...);

#define __atomic_load_n(p, order) ({ program_step(); *(volatile typeof(*(p)) *)(p); })
#define __atomic_store_n(p, v, order) \
	({ program_step(); *(volatile typeof(*(p)) *)(p) = (v); })
#define __atomic_fetch_or(p, v, order) \
	({ program_step(); typeof(*(p)) old_ = *(p); *(p) |= (v); old_; })
#define __atomic_fetch_add(p, v, order) ({				\
	program_step();							\
	typeof(*(p)) old_ = *(p);					\
	*(p) += (v);							\
	program_exchanged(p, old_, *(p));				\
	old_; })
#define __atomic_add_fetch(p, v, order) ({ program_step(); *(p) += (v); })
#define __atomic_exchange_n(p, v, order) \
	({ program_step(); typeof(*(p)) old_ = *(p); *(p) = (v); old_; })
#define __atomic_compare_exchange_n(p, expected, desired, weak, success, failure) ({ \
	typeof(*(p)) new_ = (desired), old_;				\
	program_step();							\
	old_ = *(p);							\
	bool done_ = old_ == *(expected);				\
	if (done_) {							\
		*(p) = new_;						\
		program_exchanged(p, old_, new_);			\
		program_step();						\
	} else {							\
		*(expected) = old_;					\
	}								\
	done_; })

#undef errno
#define errno (*program_errno())
#define syscall program_call
#define fcntl(fd, command) 0
#define pthread_testcancel() ((void)0)

#endif /* FLOWFD_SIM_LIBRARY_H */
