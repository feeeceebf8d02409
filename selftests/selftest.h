/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every test program needs: counters of each origin, system calls that return
 * -errno, and what can be seen of a descriptor or a sleeping thread from outside. Does
 * not use libflowfd, as the ABI itself is tested.
 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <kselftest_harness.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/flowfd.h>

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT TEST_SECONDS

#define DEVICE "/dev/flowfd"

/* Bytes; not everywhere 4096. */
#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* In what poll(2) and epoll_wait(2) sleep: newer architectures have no other. */
#ifdef SYS_poll
#define POLL_CALL  SYS_poll
#define EPOLL_CALL SYS_epoll_wait
#else
#define POLL_CALL  SYS_ppoll
#define EPOLL_CALL SYS_epoll_pwait
#endif

/* Time limit for anything that must happen, on a slow and busy machine. */
#define PATIENCE_MS 10000
/* How long to wait for something that must not happen. */
#define QUIET_MS 100

enum origin {
	EVENTFD,	/* of the kernel, for comparison */
	OPENED,		/* by open() of the device */
	CREATED,	/* by ioctl */
	SET_UP,		/* opened, then set up by ioctl */
	MAPPED,		/* by ioctl, with its count in memory that can be mapped */
};

/* -errno in place of -1, so that a failure shows the reason. */
static inline long result_of(long result)
{
	return result < 0 ? -errno : result;
}

/* A request with a structure of another size. */
static inline unsigned long resized(unsigned long cmd, size_t size)
{
	return (cmd & ~((unsigned long)_IOC_SIZEMASK << _IOC_SIZESHIFT)) |
	       size << _IOC_SIZESHIFT;
}

static inline long create_counter(const struct flowfd_create_counter *args)
{
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	long fd;

	if (device < 0)
		return -errno;
	fd = result_of(ioctl(device, FLOWFD_IOC_CREATE_COUNTER, args));
	close(device);
	return fd;
}

static inline long setup_counter(const struct flowfd_create_counter *args)
{
	struct flowfd_create_counter counter = *args;
	bool nonblock = counter.flags & FLOWFD_NONBLOCK;
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC | (nonblock ? O_NONBLOCK : 0));

	counter.flags &= ~FLOWFD_NONBLOCK;
	if (fd >= 0 && ioctl(fd, FLOWFD_IOC_SETUP_COUNTER, &counter)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline long add(int fd, __u64 value)
{
	return result_of(write(fd, &value, sizeof(value)));
}

static inline long take(int fd, __u64 *value)
{
	return result_of(read(fd, value, sizeof(*value)));
}

/* A counter, non-blocking with EFD_NONBLOCK; always close-on-exec. */
static inline int open_counter(enum origin origin, __u64 initial, int flags)
{
	struct flowfd_create_counter args = {
		.initial = initial,
		.flags = (flags & EFD_NONBLOCK ? FLOWFD_NONBLOCK : 0) |
			 (flags & EFD_SEMAPHORE ? FLOWFD_SEMAPHORE : 0),
	};
	int fd;

	if (origin == MAPPED)
		args.flags |= FLOWFD_MAPPED;
	if (origin == CREATED || origin == MAPPED)
		return create_counter(&args);
	if (origin == SET_UP)
		return setup_counter(&args);
	if (origin == OPENED)
		fd = open(DEVICE, O_RDWR | O_CLOEXEC | (flags & EFD_NONBLOCK));
	else
		fd = eventfd(0, flags | EFD_CLOEXEC);
	if (fd >= 0 && initial)
		add(fd, initial);
	return fd;
}

static inline long set_maximum(int fd, __u64 maximum)
{
	return result_of(ioctl(fd, EFD_IOC_SET_MAXIMUM, &maximum));
}

static inline __u64 maximum_of(int fd)
{
	__u64 maximum = 0;

	return ioctl(fd, EFD_IOC_GET_MAXIMUM, &maximum) ? 0 : maximum;
}

static inline long set_qos(int fd, __u32 capacity, __u32 rate)
{
	struct eventfd_qos qos = { capacity, rate };

	return result_of(ioctl(fd, EFD_IOC_SET_QOS, &qos));
}

static inline struct eventfd_qos qos_of(int fd)
{
	struct eventfd_qos qos = { UINT_MAX, UINT_MAX };

	ioctl(fd, EFD_IOC_GET_QOS, &qos);
	return qos;
}

static inline void set_nonblock(int fd, bool nonblock)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

/* The VALUE of the line "KEY: VALUE" of a file in /proc; "" if there is none. */
static inline void proc_value(const char *path, const char *key, char *value,
			      size_t size)
{
	char line[256], *p;
	size_t length = strlen(key);
	FILE *f = fopen(path, "r");

	*value = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, length) || line[length] != ':')
			continue;
		for (p = line + length + 1; *p != '\n' && size > 1; size--)
			*value++ = *p++;
		*value = '\0';
		break;
	}
	if (f)
		fclose(f);
}

static inline void fdinfo_line(int fd, const char *key, char *value,
			       size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	proc_value(path, key, value, size);
}

static inline unsigned long long fdinfo_number(int fd, const char *key,
					       int base)
{
	char value[64];

	fdinfo_line(fd, key, value, sizeof(value));
	return *value ? strtoull(value, NULL, base) : ULLONG_MAX;
}

/* References to the module; -1: it is not loaded. */
static inline long module_users(void)
{
	char text[32] = "";
	FILE *f = fopen("/sys/module/flowfd/refcnt", "r");

	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	return atol(text);
}

static inline __u64 count_of(int fd)
{
	return fdinfo_number(fd, "eventfd-count", 16);
}

static inline int id_of(int fd)
{
	return fdinfo_number(fd, "eventfd-id", 10);
}

static inline bool wakeup_is_deferred(int fd)
{
	return fdinfo_number(fd, "flowfd-wakeup-deferred", 10) == 1;
}

static inline int poll_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&p, 1, 0) < 0 ? -errno : p.revents;
}

static inline int poll_for(int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, timeout) < 0 ? -errno : p.revents;
}

/* An epoll instance that watches one descriptor. */
static inline int epoll_on(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event)) {
		close(ep);
		return -1;
	}
	return ep;
}

/* The events of the next entry; 0: none before the timeout. */
static inline __u32 epoll_take(int ep, int timeout)
{
	struct epoll_event event = { 0 };
	int n;

	do {
		n = epoll_wait(ep, &event, 1, timeout);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? event.events : 0;
}

static inline __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Processor time of the calling thread: with interrupts off, but not while others run. */
static inline __u64 thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline void sleep_until_ns(__u64 when)
{
	struct timespec t = { when / 1000000000, when % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static inline void sleep_ms(unsigned int ms)
{
	sleep_until_ns(now_ns() + ms * 1000000ULL);
}

/* A deadline. */
static inline __u64 ms_from_now(unsigned int ms)
{
	return now_ns() + ms * 1000000ULL;
}

/* Keeps the calling thread on a processor. */
static inline bool run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

/* Keeps processor 0 from others until the caller sleeps, and what it starts, or ends that. */
static inline bool keep_processor(bool keep)
{
	const struct sched_param param = { .sched_priority = keep };

	return run_on(0) &&
	       !sched_setscheduler(0, keep ? SCHED_FIFO : SCHED_OTHER, &param);
}

/* Busy-waits. */
static inline void spin_ns(__u64 ns)
{
	__u64 end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* Waits for what another thread counts; false: it does not become that. */
static inline bool wait_until_sum(const __u64 *sum, __u64 value)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (__atomic_load_n(sum, __ATOMIC_SEQ_CST) != value) {
		if (now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* Spins, as both threads must run at the same time; yields if they cannot. */
static inline void spin_until(const unsigned int *word, unsigned int value)
{
	for (unsigned int i = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) !=
				 value; i++) {
		if (i % 4096 == 0)
			sched_yield();
	}
}

/* False: no other thread set the flag in time. */
static inline bool wait_until_set(const bool *flag)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* References to the module may be dropped a little after a call returned. */
static inline long settled_module_users(long expected)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (module_users() != expected && now_ns() < end)
		sleep_ms(1);
	return module_users();
}

static inline bool thread_sleeps_in(pid_t tid, long call)
{
	char path[64], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	return *text >= '0' && *text <= '9' && strtol(text, NULL, 10) == call;
}

/* For a thread that stores its id when it starts. False: it does not sleep. */
static inline bool wait_until_asleep(pid_t *tid, long call)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (now_ns() < end) {
		pid_t t = __atomic_load_n(tid, __ATOMIC_ACQUIRE);

		if (t && thread_sleeps_in(t, call))
			return true;
		sleep_ms(1);
	}
	return false;
}

/* How often a thread went to sleep: a spurious wakeup adds one. */
static inline long thread_sleeps(pid_t tid)
{
	char path[64], value[32];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	proc_value(path, "voluntary_ctxt_switches", value, sizeof(value));
	return strtol(value, NULL, 10);
}

/* A read or write of a counter in a thread of its own. */
struct call {
	pthread_t thread;
	pid_t tid;
	int fd;
	bool is_write;
	bool finished;
	__u64 value;
	long result;
};

static inline void *call_run(void *arg)
{
	struct call *c = arg;

	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	c->result = c->is_write ? add(c->fd, c->value) :
				  take(c->fd, &c->value);
	__atomic_store_n(&c->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline bool call_finished(const struct call *c)
{
	return __atomic_load_n(&c->finished, __ATOMIC_ACQUIRE);
}

/* Returns when it sleeps in the kernel. False: it does not. */
static inline bool call_start(struct call *c)
{
	if (pthread_create(&c->thread, NULL, call_run, c))
		return false;
	return wait_until_asleep(&c->tid, c->is_write ? SYS_write : SYS_read);
}

static inline bool start_read(struct call *c, int fd)
{
	*c = (struct call){ .fd = fd };
	return call_start(c);
}

static inline bool start_write(struct call *c, int fd, __u64 value)
{
	*c = (struct call){ .fd = fd, .is_write = true, .value = value };
	return call_start(c);
}

/* False: it is not finished in time. */
static inline bool call_join(struct call *c)
{
	return wait_until_set(&c->finished) && !pthread_join(c->thread, NULL);
}

static inline void on_signal(int signal)
{
}

/* Makes SIGUSR1 interrupt system calls; with SA_RESTART they are restarted. */
static inline void catch_signal(int flags)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = flags };

	sigaction(SIGUSR1, &action, NULL);
}

/* A page with no mapping behind it, or MAP_FAILED. */
static inline char *page_before_a_hole(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED || munmap(pages + PAGE, PAGE) ?
	       MAP_FAILED : pages;
}

/* A number from the environment, for longer runs than the default. */
static inline unsigned long parameter(const char *name, unsigned long value)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : value;
}

/* How long a test runs that waits for a rare event. */
static inline __u64 stress_ns(void)
{
	return parameter("FLOWFD_STRESS_MS", 1500) * 1000000ULL;
}

#endif /* SELFTEST_H */
