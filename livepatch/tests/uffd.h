/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A userfaultfd with an area of memory, threads that read faults and resolve
 * them, and threads that fault. Shared by the tests and the benchmark.
 */
#ifndef UFFD_H
#define UFFD_H

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/userfaultfd.h>

#define PAGE 4096UL

struct area {
	int fd;
	char *memory;
	size_t pages;
};

struct reader {
	pthread_t thread;
	pid_t tid;
	const struct area *area;
	bool stop;
	unsigned long served;
	/* Voluntary context switches, set when the thread ends. */
	long sleeps;
};

struct faulter {
	pthread_t thread;
	const struct area *area;
	size_t first, pages;
	unsigned long rounds;
	unsigned long wrong;
};

static inline bool is_patched(void)
{
	glob_t found;
	bool loaded = !glob("/sys/kernel/livepatch/flowfd_livepatch*", 0, NULL, &found);

	if (loaded)
		globfree(&found);
	return loaded;
}

static inline int area_register(const struct area *a)
{
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING,
		.range.start = (unsigned long)a->memory,
		.range.len = a->pages * PAGE,
	};

	return ioctl(a->fd, UFFDIO_REGISTER, &reg);
}

static inline int area_unregister(const struct area *a)
{
	struct uffdio_range range = {
		.start = (unsigned long)a->memory,
		.len = a->pages * PAGE,
	};

	return ioctl(a->fd, UFFDIO_UNREGISTER, &range);
}

/* A number from a file of /proc/DIR/ID; -1 if the file or the line is not there. */
static inline long uffd_proc(const char *dir, int id, const char *file,
			     const char *format)
{
	char path[64], line[128];
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s%d%s", dir, id, file);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, format, &number);
	if (f)
		fclose(f);
	return number;
}

/* Messages that no reader has taken. */
static inline long messages_pending(int fd)
{
	return uffd_proc("self/fdinfo/", fd, "", "pending: %ld");
}

static inline int area_open(struct area *a, size_t pages, __u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };

	a->pages = pages;
	a->fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (a->fd < 0 || ioctl(a->fd, UFFDIO_API, &api))
		return -errno;
	a->memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED || area_register(a))
		return -errno;
	return 0;
}

static inline void area_close(struct area *a)
{
	munmap(a->memory, a->pages * PAGE);
	close(a->fd);
}

/* Fills a page with the byte 1 and wakes the threads that wait for it. */
static inline void area_fill(const struct area *a, unsigned long address)
{
	static const char ones[PAGE] = { [0 ... PAGE - 1] = 1 };
	struct uffdio_copy copy = {
		.dst = address & ~(PAGE - 1),
		.src = (unsigned long)ones,
		.len = PAGE,
	};
	struct uffdio_range range = { .start = copy.dst, .len = PAGE };

	while (ioctl(a->fd, UFFDIO_COPY, &copy) && errno == EAGAIN)
		copy.copy = 0;
	/* If the page was present already, the copy has woken no thread. */
	ioctl(a->fd, UFFDIO_WAKE, &range);
}

static inline void uffd_signalled(int signal)
{
	(void)signal;
}

/* Lets the signal interrupt a read. */
static inline void uffd_catch(int signal)
{
	struct sigaction action = { .sa_handler = uffd_signalled };

	sigaction(signal, &action, NULL);
}

/* How often a thread went to sleep. */
static inline long uffd_sleeps(pid_t tid)
{
	return uffd_proc("self/task/", tid, "/status", "voluntary_ctxt_switches: %ld");
}

/* Whether a thread, or a process, sleeps in this system call. */
static inline bool uffd_sleeps_in(pid_t tid, long call)
{
	return uffd_proc("", tid, "/syscall", "%ld") == call;
}

static inline void uffd_nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* For a process, or a thread that stores its id when it starts. */
static inline void uffd_wait_until_asleep(pid_t *tid, long call)
{
	pid_t t;

	do {
		uffd_nap();
		t = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
	} while (!t || !uffd_sleeps_in(t, call));
}

static inline void *reader_run(void *arg)
{
	struct reader *r = arg;
	struct uffd_msg message;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		if (read(r->area->fd, &message, sizeof(message)) != sizeof(message))
			continue;
		area_fill(r->area, message.arg.pagefault.address);
		r->served++;
	}
	r->sleeps = uffd_sleeps(r->tid);
	return NULL;
}

/* Returns once all of them sleep in read(). */
static inline void readers_start(struct reader *readers, int n, const struct area *area)
{
	int i;

	uffd_catch(SIGUSR1);
	for (i = 0; i < n; i++) {
		readers[i] = (struct reader){ .area = area };
		pthread_create(&readers[i].thread, NULL, reader_run, &readers[i]);
	}
	for (i = 0; i < n; i++)
		uffd_wait_until_asleep(&readers[i].tid, SYS_read);
}

static inline void readers_stop(struct reader *readers, int n)
{
	int i;

	for (i = 0; i < n; i++)
		__atomic_store_n(&readers[i].stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++) {
		/* Again if the signal came before the read that it is to end. */
		do {
			pthread_kill(readers[i].thread, SIGUSR1);
			uffd_nap();
		} while (pthread_tryjoin_np(readers[i].thread, NULL));
	}
}

static inline void *faulter_run(void *arg)
{
	struct faulter *f = arg;
	char *start = f->area->memory + f->first * PAGE;
	unsigned long round;
	size_t page;

	for (round = 0; round < f->rounds; round++) {
		for (page = 0; page < f->pages; page++)
			f->wrong += *(volatile char *)(start + page * PAGE) != 1;
		madvise(start, f->pages * PAGE, MADV_DONTNEED);
	}
	return NULL;
}

/*
 * Each of n threads faults in pages of its own. Returns when all faults were served: how
 * many pages had the wrong content.
 */
static inline unsigned long faults_make(const struct area *area, int n,
					unsigned long rounds)
{
	struct faulter faulters[n];
	unsigned long wrong = 0;
	int i;

	for (i = 0; i < n; i++) {
		faulters[i] = (struct faulter){
			.area = area,
			.first = i * (area->pages / n),
			.pages = area->pages / n,
			.rounds = rounds,
		};
		pthread_create(&faulters[i].thread, NULL, faulter_run, &faulters[i]);
	}
	for (i = 0; i < n; i++) {
		pthread_join(faulters[i].thread, NULL);
		wrong += faulters[i].wrong;
	}
	return wrong;
}

#endif /* UFFD_H */
