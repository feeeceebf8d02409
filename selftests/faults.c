// SPDX-License-Identifier: GPL-2.0-only
/*
 * In each call that allocates or copies, every allocation and every copy from or to
 * user memory fails once: the call must return the error, and nothing may leak. Needs a
 * kernel with CONFIG_FAULT_INJECTION and debugfs, as the debug kernels have.
 */
#include "fault_injection.h"
#include "ring_user.h"
#include "sockets.h"

struct place {
	int device;
	int fd;		/* of the file that the call adds */
	struct flowfd_share key; /* of @device */
	struct user_ring ring;
};

static long call_open(struct place *p)
{
	return result_of(open(DEVICE, O_RDWR | O_CLOEXEC));
}

static long call_create_counter(struct place *p)
{
	struct flowfd_create_counter args = { .qos = { 1, 10 } };

	return result_of(ioctl(p->device, FLOWFD_IOC_CREATE_COUNTER, &args));
}

static long call_create_mapped(struct place *p)
{
	struct flowfd_create_counter args = { .flags = FLOWFD_MAPPED };

	return result_of(ioctl(p->device, FLOWFD_IOC_CREATE_COUNTER, &args));
}

static long call_setup(struct place *p)
{
	struct flowfd_create_counter args = { .qos = { 1, 10 } };

	return result_of(setup_counter(&args));
}

static long call_create_ring(struct place *p)
{
	struct flowfd_create_ring args = { .max_items = 3000 };

	return result_of(ioctl(p->device, FLOWFD_IOC_CREATE_RING, &args));
}

/* An allocation of less than a page has no fallback. */
static long call_create_small_ring(struct place *p)
{
	struct flowfd_create_ring args = { .max_items = 4 };

	return result_of(ioctl(p->device, FLOWFD_IOC_CREATE_RING, &args));
}

/* A counter of its own each time, as the first call makes the key. */
static long call_share(struct place *p)
{
	int fd = open_counter(CREATED, 0, 0);
	struct flowfd_share args = { 0 };
	long result;

	if (fd < 0)
		return fd;
	result = result_of(ioctl(fd, FLOWFD_IOC_SHARE, &args));
	close(fd);
	return result;
}

static long call_open_shared(struct place *p)
{
	return result_of(ioctl(p->device, FLOWFD_IOC_OPEN, &p->key));
}

static long call_query(struct place *p)
{
	struct flowfd_query query;

	return result_of(ioctl(p->device, FLOWFD_IOC_QUERY, &query));
}

static long call_qos(struct place *p)
{
	return set_qos(p->device, 1, 10);
}

/* A counter of its own each time, as the first bridge allocates what it keeps. */
static long call_bridge(struct place *p)
{
	struct flowfd_bridge args = { .eventfd = p->fd, .flags = FLOWFD_BRIDGE_SOURCE };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	long result;

	if (fd < 0)
		return -errno;
	result = result_of(ioctl(fd, FLOWFD_IOC_COUNTER_BRIDGE, &args));
	close(fd);
	return result;
}

static long call_balance(struct place *p)
{
	struct flowfd_balance args = { .fd = p->fd };

	return result_of(ioctl(p->device, FLOWFD_IOC_BALANCE, &args));
}

static long call_objects(struct place *p)
{
	int fd = open(DEBUGFS "flowfd/objects", O_RDONLY | O_CLOEXEC);
	long result;
	char byte;

	if (fd < 0)
		return -errno;
	result = result_of(read(fd, &byte, 1));
	close(fd);
	return result;
}

static long call_add(struct place *p)
{
	return ring_add(&p->ring, p->fd, EPOLLIN | EPOLLOUT, 1);
}

static long call_wait(struct place *p)
{
	__u64 mask = 0;

	return ring_wait_with(&p->ring, (struct flowfd_ring_wait){
		.sigmask = (uintptr_t)&mask, .sigmask_size = 8 });
}

static void undo_close(struct place *p, long result)
{
	close(result);
}

static void undo_add(struct place *p, long result)
{
	ring_del(&p->ring, p->fd);
}

static int open_created(void)
{
	return open_counter(CREATED, 0, 0);
}

static int open_eventfd(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int open_listener(void)
{
	return listener_open(AF_UNIX, SOCK_STREAM, 1);
}

static int open_pipe(void)
{
	int ends[2];

	if (pipe(ends))
		return -1;
	close(ends[1]);
	return ends[0];
}

/* A terminal has two wait queues. */
static int open_terminal(void)
{
	return posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
}

FIXTURE(faults)
{
	int nth;	/* this thread's file fail-nth */
	long users;
	struct place place;
};

FIXTURE_VARIANT(faults)
{
	long (*call)(struct place *p);
	void (*undo)(struct place *p, long result);	/* or NULL */
	int (*open)(void);
	int least;	/* steps whose failure must be an error */
};

#define CALL(name, ...) FIXTURE_VARIANT_ADD(faults, name) { __VA_ARGS__ }

CALL(open, .call = call_open, .undo = undo_close, .least = 1);
CALL(create_counter, .call = call_create_counter, .undo = undo_close, .least = 3);
CALL(setup, .call = call_setup, .undo = undo_close, .least = 2);
CALL(create_mapped, .call = call_create_mapped, .undo = undo_close, .least = 6);
CALL(create_small_ring, .call = call_create_small_ring, .undo = undo_close, .least = 7);
CALL(create_ring, .call = call_create_ring, .undo = undo_close, .least = 6);
CALL(share, .call = call_share, .least = 6);
CALL(open_shared, .call = call_open_shared, .undo = undo_close, .least = 1);
CALL(query, .call = call_query, .least = 1);
CALL(qos, .call = call_qos, .least = 1);
CALL(bridge, .call = call_bridge, .open = open_eventfd, .least = 3);
CALL(balance, .call = call_balance, .undo = undo_close, .open = open_listener,
     .least = 3);
CALL(objects, .call = call_objects, .least = 4);
CALL(wait, .call = call_wait, .least = 2);
CALL(add_counter, .call = call_add, .undo = undo_add, .open = open_created, .least = 3);
CALL(add_eventfd, .call = call_add, .undo = undo_add, .open = open_eventfd, .least = 3);
CALL(add_socket, .call = call_add, .undo = undo_add, .open = open_socket, .least = 4);
CALL(add_pipe, .call = call_add, .undo = undo_add, .open = open_pipe, .least = 4);
CALL(add_terminal, .call = call_add, .undo = undo_add, .open = open_terminal, .least = 4);

FIXTURE_SETUP(faults)
{
	struct place *p = &self->place;

	self->nth = -1;
	if (!faults_can_be_asked_for())
		return;
	self->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->nth);
	p->device = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, p->device);
	ASSERT_EQ(0, result_of(ioctl(p->device, FLOWFD_IOC_SHARE, &p->key)));
	ASSERT_EQ(0, ring_open(&p->ring, 4));
	p->fd = variant->open ? variant->open() : -1;
	self->users = module_users();
}

FIXTURE_TEARDOWN(faults)
{
	if (self->nth < 0)
		return;
	ring_close(&self->place.ring);
	close(self->place.fd);
	close(self->place.device);
	close(self->nth);
}

/*
 * Some allocations are optional. If another fails, the call returns an error and can be
 * repeated.
 */
TEST_F(faults, each_step_fails)
{
	struct place *p = &self->place;
	int step, errors = 0;

	/* Not in the setup: older harnesses run the test in spite of a SKIP there. */
	if (self->nth < 0)
		SKIP(return, "the kernel does not inject faults");
	for (step = 1; step < 1000; step++) {
		long result;
		bool failed;

		fail_step(self->nth, step);
		result = variant->call(p);
		failed = step_failed(self->nth);
		if (result >= 0) {
			if (variant->undo)
				variant->undo(p, result);
		} else {
			EXPECT_TRUE(result == -ENOMEM || result == -EFAULT)
				TH_LOG("step %d: %ld", step, result);
			errors++;
		}
		EXPECT_EQ(0, ring_watched(p->ring.fd));
		EXPECT_EQ(self->users, module_users());
		if (!failed)
			break;
		EXPECT_EQ(0, count_of(p->device));
	}
	EXPECT_GT(1000, step);
	EXPECT_LE(variant->least, errors);
	TH_LOG("%d steps, %d errors", step - 1, errors);
}

TEST_HARNESS_MAIN
