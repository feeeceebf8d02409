// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays the module for programs under the shim, where there is none: counters are files
 * of three pages in memory. It is preloaded behind the shim, so it gets the calls that
 * the shim passes on, and those that the shim does not wrap: fclose(3) is a close that
 * the shim does not see. Nothing can poll such a counter, and reads wait by trying again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/flowfd.h>

#define PAGE 4096
#define SIZE (3 * PAGE)

struct counter {
	_Alignas(PAGE) struct flowfd_counter_header header;
	_Alignas(PAGE) struct flowfd_counter_producer producer;
	_Alignas(PAGE) struct flowfd_counter_consumer consumer;
};

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* Returns the number of a counter, or -1 for another file. */
static long id_of(int fd)
{
	struct stat status;
	int saved = errno;
	bool is_counter = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
			  !status.st_nlink && status.st_size == SIZE;

	errno = saved;
	return is_counter ? (long)(status.st_ino & 0x7fffffff) : -1;
}

static struct counter *map(int fd)
{
	void *memory = MAP_FAILED;
	int saved = errno;

	if (id_of(fd) >= 0)
		memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	errno = saved;
	return memory == MAP_FAILED ? NULL : memory;
}

static void count_close(int fd)
{
	struct counter *c = map(fd);

	if (!c)
		return;
	__atomic_fetch_add(&c->header.closes, 1, __ATOMIC_SEQ_CST);
	munmap(c, SIZE);
}

static int set_up(int fd, const struct flowfd_create_counter *args)
{
	struct counter *c = map(fd);

	if (!c) {
		errno = EPROTO;
		return -1;
	}
	c->header = (struct flowfd_counter_header){
		.magic = FLOWFD_COUNTER_MAGIC,
		.version = FLOWFD_COUNTER_VERSION,
		.page_size = PAGE,
		.flags = args->flags,
		.maximum = args->maximum,
		.id = id_of(fd),
	};
	c->producer.produced = args->initial;
	munmap(c, SIZE);
	return 0;
}

static int open_device(int flags)
{
	int fd = memfd_create("flowfd", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, SIZE) || fcntl(fd, F_SETFL, flags & O_NONBLOCK))
		return -1;
	return fd;
}

static int create(const struct flowfd_create_counter *args)
{
	int fd = open_device(O_CLOEXEC | (args->flags & FLOWFD_NONBLOCK ? O_NONBLOCK : 0));

	if (fd < 0 || !set_up(fd, args))
		return fd;
	close(fd);
	return -1;
}

long syscall(long number, ...)
{
	long (*function)(long number, ...) = next("syscall");
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat && strcmp((char *)a[1], "/dev/flowfd") == 0)
		return open_device(a[2]);
	if (number == SYS_ioctl && a[1] == FLOWFD_IOC_CREATE_COUNTER)
		return create((void *)a[2]);
	if (number == SYS_ioctl && a[1] == FLOWFD_IOC_SETUP_COUNTER)
		return set_up(a[0], (void *)a[2]);
	if (number == SYS_ioctl && a[1] == FLOWFD_IOC_COUNTER_ID && id_of(a[0]) >= 0)
		return id_of(a[0]);
	if (number == SYS_close)
		return close(a[0]);
	return function(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* flowfd-run looks for the module. */
int ioctl(int fd, unsigned long request, ...)
{
	int (*function)(int fd, unsigned long request, ...) = next("ioctl");
	void *argument;
	va_list list;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (request != FLOWFD_IOC_QUERY || id_of(fd) < 0)
		return function(fd, request, argument);
	*(struct flowfd_query *)argument = (struct flowfd_query){
		.abi_version = FLOWFD_ABI_VERSION,
		.features = FLOWFD_FEATURE_MAPPED,
	};
	return 0;
}

/* Returns 8, or -1 with errno. */
static int try_write(struct counter *c, uint64_t value)
{
	uint64_t consumed, produced;

	if (value == UINT64_MAX) {
		errno = EINVAL;
		return -1;
	}
	do {
		consumed = __atomic_load_n(&c->consumer.consumed, __ATOMIC_SEQ_CST);
		produced = __atomic_load_n(&c->producer.produced, __ATOMIC_SEQ_CST);
		if (c->header.maximum - (produced - consumed) <= value) {
			errno = EAGAIN;
			return -1;
		}
	} while (!__atomic_compare_exchange_n(&c->producer.produced, &produced,
					      produced + value, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	return sizeof(value);
}

static int try_read(struct counter *c, uint64_t *value)
{
	uint64_t consumed, produced;

	do {
		consumed = __atomic_load_n(&c->consumer.consumed, __ATOMIC_SEQ_CST);
		produced = __atomic_load_n(&c->producer.produced, __ATOMIC_SEQ_CST);
		if (consumed == produced) {
			errno = EAGAIN;
			return -1;
		}
	} while (!__atomic_compare_exchange_n(&c->consumer.consumed, &consumed, produced,
					      false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	*value = produced - consumed;
	return sizeof(*value);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	ssize_t (*function)(int fd, const void *bytes, size_t size) = next("write");
	struct counter *c = map(fd);
	uint64_t value;
	int ret;

	if (!c)
		return function(fd, bytes, size);
	if (size == sizeof(value)) {
		memcpy(&value, bytes, sizeof(value));
		ret = try_write(c, value);
	} else {
		errno = EINVAL;
		ret = -1;
	}
	munmap(c, SIZE);
	return ret;
}

ssize_t read(int fd, void *bytes, size_t size)
{
	ssize_t (*function)(int fd, void *bytes, size_t size) = next("read");
	struct counter *c = map(fd);
	uint64_t value;
	int ret;

	if (!c || size > SSIZE_MAX)
		return function(fd, bytes, size);
	errno = size < sizeof(value) ? EINVAL : errno;
	ret = size < sizeof(value) ? -1 : try_read(c, &value);
	while (ret < 0 && errno == EAGAIN && !(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
		usleep(1000);
		ret = try_read(c, &value);
	}
	if (ret > 0)
		memcpy(bytes, &value, sizeof(value));
	munmap(c, SIZE);
	return ret;
}

int eventfd_write(int fd, eventfd_t value)
{
	return write(fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

int eventfd_read(int fd, eventfd_t *value)
{
	return read(fd, value, sizeof(*value)) == sizeof(*value) ? 0 : -1;
}

int close(int fd)
{
	int (*function)(int fd) = next("close");

	count_close(fd);
	return function(fd);
}

int dup2(int old, int number)
{
	int (*function)(int old, int number) = next("dup2");

	if (old != number)
		count_close(number);
	return function(old, number);
}

int dup3(int old, int number, int flags)
{
	int (*function)(int old, int number, int flags) = next("dup3");

	count_close(number);
	return function(old, number, flags);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
	int (*function)(unsigned int first, unsigned int last, int flags);

	for (unsigned int fd = first; fd <= last && fd < 4096; fd++)
		count_close(fd);
	function = next("close_range");
	return function(first, last, flags);
}

int fclose(FILE *file)
{
	int (*function)(FILE *file) = next("fclose");

	count_close(fileno(file));
	return function(file);
}
