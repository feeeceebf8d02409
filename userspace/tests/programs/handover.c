// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands eventfds to the kernel, which signals them: AIO, io_uring, vhost, KVM.
 * Runs by itself, where it tests the system, and under flowfd-run, where counters
 * must be replaced. Prints TAP. Arguments:
 *   refused   descriptors that are in use elsewhere must be refused
 *   one       no tests: prints what io_submit() returns for one request
 */
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <linux/kvm.h>
#include <linux/vhost.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

/* Returns the count, or -1 if it stays 0 for a second. */
static long take(int fd)
{
	struct pollfd file = {.fd = fd, .events = POLLIN};
	uint64_t count;

	if (poll(&file, 1, 1000) != 1)
		return -1;
	return read(fd, &count, sizeof(count)) == sizeof(count) ? (long)count :
								  -1;
}

static void add(int fd, uint64_t count)
{
	if (write(fd, &count, sizeof(count)) != sizeof(count))
		perror("write");
}

static io_context_t aio;
static const char *own_path;
static char byte;

/* Reads a byte by AIO, which then signals @fd. Returns 1, or -errno. */
static int submit_two(int fd, int second)
{
	int file = open(own_path, O_RDONLY);
	struct iocb iocbs[2];
	struct iocb *list[2] = {&iocbs[0], &iocbs[1]};
	struct io_event event;
	int ret;

	for (int i = 0; i < 2; i++) {
		io_prep_pread(&iocbs[i], file, &byte, 1, 0);
		io_set_eventfd(&iocbs[i], i ? second : fd);
	}
	ret = io_submit(aio, second < 0 ? 1 : 2, list);
	for (int i = 0; i < ret; i++)
		io_getevents(aio, 1, 1, &event, NULL);
	close(file);
	return ret;
}

static int submit(int fd)
{
	return submit_two(fd, -1);
}

static void test_aio(void)
{
	int fd = eventfd(0, 0);
	int second = eventfd(3, EFD_CLOEXEC | EFD_NONBLOCK);
	struct iocb iocb = {0};
	struct iocb *list[] = {&iocb};

	tap_is(submit(fd), 1, "io_submit");
	tap_is(take(fd), 1, "io_submit signals");
	tap_is(submit_two(fd, second), 2, "io_submit, two requests");
	tap_is(take(fd), 1, "the first signals");
	tap_is(take(second), 4, "the second signals, and had 3");
	tap_is(fcntl(second, F_GETFD), FD_CLOEXEC, "close-on-exec");
	tap_is(fcntl(second, F_GETFL) & O_NONBLOCK, O_NONBLOCK, "non-blocking");
	tap_is(fcntl(fd, F_GETFD), 0, "not close-on-exec");
	close(second);

	second = eventfd(0, 0);
	io_prep_pread(&iocb, STDIN_FILENO, &byte, 1, 0);
	iocb.aio_fildes = open(own_path, O_RDONLY);
	io_set_eventfd(&iocb, second);
	tap_is(syscall(SYS_io_submit, aio, 1, list), 1, "by syscall(2)");
	tap_is(take(second), 1, "signals");
	close(iocb.aio_fildes);
	close(second);
	close(fd);
}

static void test_aio_errors(void)
{
	int fd = eventfd(0, 0);
	struct iocb iocb;
	struct iocb *list[] = {&iocb};

	errno = 0;
	tap_is(io_submit(aio, -1, list), -EINVAL, "a negative number");
	tap_is(io_submit(aio, 1, (void *)-4096L), -EFAULT, "a bad list");
	list[0] = (void *)-4096L;
	tap_is(io_submit(aio, 1, list), -EFAULT, "a bad request");
	tap_is(io_submit(NULL, 1, list), -EINVAL, "a bad context");
	tap_is(errno, 0, "errno stays");
	list[0] = &iocb;
	io_prep_pread(&iocb, -1, &byte, 1, 0);
	io_set_eventfd(&iocb, fd);
	tap_is(io_submit(aio, 1, list), -EBADF, "a bad file");
	io_prep_pread(&iocb, STDOUT_FILENO, &byte, 1, 0);
	io_set_eventfd(&iocb, STDOUT_FILENO);
	tap_is(syscall(SYS_io_submit, aio, 1, list), -1, "no eventfd");
	tap_is(errno, EINVAL, "is EINVAL");
	close(fd);
}

static void test_semaphore(void)
{
	int fd = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);

	tap_is(submit(fd), 1, "a semaphore");
	tap_is(take(fd), 1, "1 of 3");
	tap_is(take(fd), 1, "2 of 3");
	tap_is(take(fd), 1, "3 of 3");
	tap_is(take(fd), -1, "and no more");
	close(fd);
}

static long wait_one(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 1000) == 1 ? (long)event.data.u64 :
							 -1;
}

static void test_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN,
				    .data.u64 = 0x123456789abc};
	int other = epoll_create1(0);
	int epoll = epoll_create1(0);
	int fd = eventfd(0, 0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	event.events = EPOLLIN | EPOLLET;
	event.data.u64 = 7;
	epoll_ctl(other, EPOLL_CTL_ADD, fd, &event);
	tap_is(submit(fd), 1, "watched by epolls");
	tap_is(wait_one(epoll), 0x123456789abc, "the first gets the event");
	tap_is(wait_one(other), 7, "the other gets the event");
	tap_is(take(fd), 1, "read");
	add(fd, 1);
	tap_is(wait_one(epoll), 0x123456789abc, "and the next one");
	tap_is(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), 0, "removed");
	tap_is(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), -1, "and was there once");
	close(epoll);
	close(other);
	close(fd);
}

/* A watch that remains of a file which had the descriptor before. */
static void test_number(int wanted)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
	int epoll = epoll_create1(0);
	int fd = eventfd(0, 0);
	int copy = dup(fd);
	int same;

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	close(fd);
	same = eventfd(0, 0);
	event.data.u64 = 2;
	tap_is(same, fd, "a number that was watched before");
	tap_is(epoll_ctl(epoll, EPOLL_CTL_ADD, same, &event), 0, "and is again");
	tap_is(submit(same), wanted, "two watches of one number");
	close(copy);
	if (wanted == 1)
		take(same);
	tap_is(submit(same), 1, "one watch");
	tap_is(wait_one(epoll), 2, "which gets the event");
	tap_is(take(same), 1, "and the count");
	close(epoll);
	close(same);
}

static void test_uring(void)
{
	int fd = eventfd(0, 0);
	int raw = eventfd(0, 0);
	struct io_uring uring;
	struct io_uring_cqe *cqe;

	if (io_uring_queue_init(4, &uring, 0) < 0) {
		tap_skip("io_uring", "is not there");
		return;
	}
	tap_is(io_uring_register_eventfd(&uring, fd), 0,
	       "io_uring_register_eventfd");
	io_uring_prep_nop(io_uring_get_sqe(&uring));
	io_uring_submit(&uring);
	tap_is(take(fd), 1, "signals");
	tap_is(io_uring_unregister_eventfd(&uring), 0, "unregistered");
	io_uring_wait_cqe(&uring, &cqe);
	io_uring_cqe_seen(&uring, cqe);
	close(fd);

	fd = eventfd(0, 0);
	tap_is(io_uring_register_eventfd_async(&uring, fd), 0,
	       "io_uring_register_eventfd_async");
	io_uring_unregister_eventfd(&uring);
	tap_is(syscall(SYS_io_uring_register, uring.ring_fd,
		       IORING_REGISTER_EVENTFD, &raw, 1),
	       0, "by syscall(2)");
	io_uring_prep_nop(io_uring_get_sqe(&uring));
	io_uring_submit(&uring);
	tap_is(take(raw), 1, "signals");
	io_uring_queue_exit(&uring);
	close(fd);
	close(raw);
}

/* KVM reads the count of an eventfd that is bound to an interrupt. */
static void test_kvm(void)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	struct kvm_irqfd irqfd = {.gsi = 4};
	struct kvm_ioeventfd io = {.addr = 0x500, .len = 1};

	if (vm < 0) {
		tap_skip("KVM", "cannot be used here");
		return;
	}
	irqfd.fd = eventfd(0, EFD_NONBLOCK);
	io.fd = eventfd(0, EFD_NONBLOCK);
	io.flags = KVM_IOEVENTFD_FLAG_PIO;
	tap_is(ioctl(vm, KVM_CREATE_IRQCHIP, 0), 0, "KVM_CREATE_IRQCHIP");
	tap_is(ioctl(vm, KVM_IRQFD, &irqfd), 0, "KVM_IRQFD");
	add(irqfd.fd, 1);
	usleep(100000);
	tap_is(take(irqfd.fd), -1, "KVM took the count");
	tap_is(ioctl(vm, KVM_IOEVENTFD, &io), 0, "KVM_IOEVENTFD");
	errno = 0;
	tap_is(ioctl(vm, KVM_IRQFD, -4096L), -1, "a bad pointer");
	tap_is(errno, EFAULT, "is EFAULT");
	close(irqfd.fd);
	close(io.fd);
	close(vm);
	close(kvm);
}

/*
 * A virtqueue with an impossible position of the guest: vhost signals an error. This is struct
 * vhost_memory with one region, whose own end has no size.
 */
struct vhost_memory_one {
	__u32 nregions;
	__u32 padding;
	struct vhost_memory_region region;
};

static void test_vhost(void)
{
	int vhost = open("/dev/vhost-vsock", O_RDWR | O_CLOEXEC);
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct vhost_memory_one memory = {
		.nregions = 1,
		.region = {.guest_phys_addr = (uintptr_t)page,
			   .memory_size = 4096,
			   .userspace_addr = (uintptr_t)page},
	};
	uint64_t features = 1ULL << 32; /* VIRTIO_F_VERSION_1 */
	struct vhost_vring_file error = {.fd = eventfd(0, EFD_NONBLOCK)};
	struct vhost_vring_file kick = {.fd = eventfd(0, 0)};
	struct vhost_vring_file ring_call = {.fd = eventfd(0, 0)};
	int log = eventfd(0, 0);
	uint64_t cid = 42;
	int running = 1;

	if (vhost < 0) {
		tap_skip("vhost", "vhost_vsock is not loaded");
		return;
	}
	ioctl(vhost, VHOST_SET_OWNER, NULL);
	ioctl(vhost, VHOST_SET_FEATURES, &features);
	ioctl(vhost, VHOST_SET_MEM_TABLE, &memory);
	ioctl(vhost, VHOST_VSOCK_SET_GUEST_CID, &cid);
	for (unsigned int i = 0; i < 2; i++) {
		struct vhost_vring_state state = {.index = i, .num = 8};
		struct vhost_vring_addr ring = {
			.index = i,
			.desc_user_addr = (uintptr_t)page + i * 2048,
			.avail_user_addr = (uintptr_t)page + i * 2048 + 512,
			.used_user_addr = (uintptr_t)page + i * 2048 + 1024,
		};

		ioctl(vhost, VHOST_SET_VRING_NUM, &state);
		state.num = 0;
		ioctl(vhost, VHOST_SET_VRING_BASE, &state);
		ioctl(vhost, VHOST_SET_VRING_ADDR, &ring);
	}
	error.index = 1;
	kick.index = 1;
	ring_call.index = 1;
	tap_is(ioctl(vhost, VHOST_SET_VRING_ERR, &error), 0, "VHOST_SET_VRING_ERR");
	tap_is(ioctl(vhost, VHOST_SET_VRING_CALL, &ring_call), 0,
	       "VHOST_SET_VRING_CALL");
	tap_is(syscall(SYS_ioctl, vhost, VHOST_SET_VRING_KICK, &kick), 0,
	       "VHOST_SET_VRING_KICK, by syscall(2)");
	tap_is(ioctl(vhost, VHOST_SET_LOG_FD, &log), 0, "VHOST_SET_LOG_FD");
	tap_is(ioctl(vhost, VHOST_VSOCK_SET_RUNNING, &running), 0, "running");
	((volatile uint16_t *)(page + 2048 + 512))[1] = 100;
	add(kick.fd, 1);
	tap_is(take(error.fd), 1, "kicked, vhost signals an error");
	close(vhost);
	close(error.fd);
	close(kick.fd);
	close(ring_call.fd);
	close(log);
}

/* Other properties of ioctl(2). */
static void test_ioctl(void)
{
	int ends[2];
	int waiting = 0;

	tap_is(pipe(ends), 0, "a pipe");
	add(ends[1], 1);
	tap_is(ioctl(ends[0], FIONREAD, &waiting), 0, "FIONREAD");
	tap_is(waiting, 8, "its result");
	tap_is(ioctl(ends[0], FIOCLEX), 0, "without an argument");
	errno = 0;
	tap_is(ioctl(ends[0], KVM_IRQFD, NULL), -1, "of another kind of file");
	tap_is(errno, ENOTTY, "is ENOTTY");
	close(ends[0]);
	close(ends[1]);
}

static void *read_later(void *argument)
{
	return (void *)take(*(int *)argument);
}

static void *read_now(void *argument)
{
	uint64_t count = 0;

	if (read(*(int *)argument, &count, sizeof(count)) < 0)
		perror("read");
	return (void *)count;
}

static void send_copy(int through, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(fd))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(fd)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec data = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (sendmsg(through, &message, 0) < 0)
		perror("sendmsg");
}

/* With other references the counter stays, and works. */
static void test_shared(int wanted)
{
	void *(*const readers[])(void *argument) = {read_now, read_later};
	int ends[2];
	int fd = eventfd(0, 0);
	int copy = dup(fd);
	int child;

	tap_is(submit(fd), wanted, "a copy");
	close(copy);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	tap_is(submit(fd), wanted, "a child");
	kill(child, SIGKILL);
	wait(NULL);
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	send_copy(ends[0], fd);
	tap_is(submit(fd), wanted, "sent");
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, readers[i], &fd);
		usleep(100000);
		tap_is(submit(fd), wanted, i ? "polled" : "being read");
		add(fd, 5);
		pthread_join(thread, &result);
		if (wanted < 0)
			tap_is((long)result, 5, "and the reader gets its count");
	}
	while (take(fd) > 0)
		;
	add(fd, 2);
	tap_is(submit(fd), 1, "alone again");
	tap_is(take(fd), 3, "and no count is lost");
	close(fd);
}

/* Threads write during the replacement: no write may be lost. */
enum { WRITES = 500 };

static void *write_many(void *argument)
{
	for (int i = 0; i < WRITES; i++)
		add(*(int *)argument, 1);
	return NULL;
}

static void test_race(void)
{
	pthread_t threads[2];
	int fd = eventfd(0, 0);
	long wanted = 2 * WRITES;
	int done = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, write_many, &fd);
	for (int i = 0; i < 20; i++)
		done += submit(fd) == 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("# %d of 20 calls succeeded\n", done);
	done += submit(fd) == 1;
	tap_ok(done > 0, "replaced between writes");
	tap_is(take(fd), wanted + done, "and all writes arrive");
	close(fd);
}

int main(int argc, char **argv)
{
	alarm(100);
	own_path = argv[0];
	if (io_setup(8, &aio) < 0) {
		perror("io_setup");
		return EXIT_FAILURE;
	}
	if (argc > 1 && strcmp(argv[1], "one") == 0) {
		printf("%d\n", submit(eventfd(0, 0)));
		return EXIT_SUCCESS;
	}
	test_aio();
	test_aio_errors();
	test_semaphore();
	test_epoll();
	test_number(argc > 1 ? -EINVAL : 1);
	test_uring();
	test_kvm();
	test_vhost();
	test_ioctl();
	test_shared(argc > 1 ? -EINVAL : 1);
	test_race();
	return tap_done();
}
