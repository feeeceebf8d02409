// SPDX-License-Identifier: GPL-2.0-only
/*
 * slow-call close: a thread closes a watched file and waits for the mutex of the epoll,
 * which another thread holds while it writes events to memory whose page nobody serves.
 * slow-call read: a thread reads a fault from a userfaultfd into such memory. Prints "waits"
 * when the threads wait, and then waits to be killed, which ends them.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static int ep, file;
static pid_t harvester, closer;

/* Returns memory whose first access waits, and its userfaultfd in *@uffd. */
static void *slow_page(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, 0);
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	area.range.start = (unsigned long)page;
	area.range.len = PAGE;
	*uffd = fd;
	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &area))
		return NULL;
	return page;
}

static void *harvest(void *page)
{
	harvester = gettid();
	epoll_wait(ep, page, 1, -1);
	return NULL;
}

static void *close_file(void *unused)
{
	closer = gettid();
	close(file);
	return NULL;
}

static int first_uffd;
static pid_t faulter, reader;

static void *touch(void *page)
{
	faulter = gettid();
	*(volatile char *)page = 1;
	return NULL;
}

static void *read_into(void *page)
{
	reader = gettid();
	if (read(first_uffd, page, 32) != 32)
		perror("read");
	return NULL;
}

/* Waits until the kernel names a function of this name as where the task sleeps. */
static int sleeps_in(const pid_t *task, const char *function)
{
	char path[64], stack[4096];

	for (int i = 0; i < 3000; i++) {
		ssize_t n = 0;
		int fd;

		usleep(10000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stack", *task);
		fd = open(path, O_RDONLY);
		if (fd >= 0) {
			n = read(fd, stack, sizeof(stack) - 1);
			close(fd);
		}
		stack[n > 0 ? n : 0] = 0;
		if (strstr(stack, function))
			return 1;
	}
	return 0;
}

static int slow_close(pthread_t *threads)
{
	struct epoll_event event = { .events = EPOLLIN };
	int uffd;
	void *page = slow_page(&uffd);

	ep = epoll_create1(0);
	file = eventfd(1, 0);
	if (!page || epoll_ctl(ep, EPOLL_CTL_ADD, file, &event))
		return 0;
	pthread_create(&threads[0], NULL, harvest, page);
	if (!sleeps_in(&harvester, "handle_userfault"))
		return 0;
	pthread_create(&threads[1], NULL, close_file, NULL);
	return sleeps_in(&closer, "eventpoll_release_file");
}

static int slow_read(pthread_t *threads)
{
	int second;
	void *page = slow_page(&first_uffd), *buffer = slow_page(&second);

	if (!page || !buffer)
		return 0;
	pthread_create(&threads[0], NULL, touch, page);
	if (!sleeps_in(&faulter, "handle_userfault"))
		return 0;
	pthread_create(&threads[1], NULL, read_into, buffer);
	return sleeps_in(&reader, "handle_userfault");
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc != 2 ||
	    !(strcmp(argv[1], "read") ? slow_close(threads) : slow_read(threads))) {
		fputs("failed\n", stderr);
		return 1;
	}
	puts("waits");
	fflush(stdout);
	pause();
	return 0;
}
