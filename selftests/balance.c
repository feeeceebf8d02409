// SPDX-License-Identifier: GPL-2.0-only
/*
 * The balance of a listening socket: EPOLLEXCLUSIVE workers are woken in turn, other
 * waiters as before, and no connection is lost while workers come and go.
 */
#include <stdatomic.h>
#include <sys/wait.h>

#include "ring_user.h"
#include "sockets.h"

#define WORKERS 8
/* More than a close looks at in one turn. */
#define WATCHED 300

struct worker {
	pthread_t thread;
	int listener;
	int kind;
	unsigned int flags;
	atomic_uint accepted;
	atomic_bool ready;
};

enum kind { IN_EPOLL, IN_ACCEPT };

static atomic_bool ending;

static long balance(int listener, unsigned int flags)
{
	struct flowfd_balance args = { .fd = listener, .flags = flags };
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	long fd = result_of(ioctl(device, FLOWFD_IOC_BALANCE, &args));

	close(device);
	return fd;
}

/* What a server does with a connection: nothing, and one byte says that it has it. */
static void serve(struct worker *w)
{
	int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	w->accepted++;
	/* The client of the teardown does not wait for it. */
	send(fd, "", 1, MSG_NOSIGNAL);
	close(fd);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	struct epoll_event event = { .events = EPOLLIN | w->flags };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (w->kind == IN_EPOLL)
		epoll_ctl(epoll, EPOLL_CTL_ADD, w->listener, &event);
	w->ready = true;
	while (!ending) {
		if (w->kind == IN_ACCEPT || epoll_wait(epoll, &event, 1, 50) == 1)
			serve(w);
	}
	close(epoll);
	return NULL;
}

/*
 * Whether a worker was woken and has accepted: after a lost wakeup none would be. Of a
 * connection that it has closed the client can get an error instead of the byte: TCP has a
 * limit of connections in TIME_WAIT.
 */
static bool client(int listener)
{
	const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	char byte;
	int fd = connect_to(listener);
	ssize_t size;
	bool ok;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd < 0)
		return fd == -EPIPE || fd == -ECONNRESET;
	size = read(fd, &byte, 1);
	ok = size == 1 || (size < 0 && errno != EAGAIN);
	close(fd);
	return ok;
}

static void start(struct worker *w, int listener, enum kind kind, unsigned int flags)
{
	w->listener = listener;
	w->kind = kind;
	w->flags = flags;
	w->accepted = 0;
	w->ready = false;
	/* Another worker may have accepted what an epoll reported. */
	if (kind == IN_EPOLL)
		fcntl(listener, F_SETFL, O_NONBLOCK);
	pthread_create(&w->thread, NULL, work, w);
	while (!w->ready)
		usleep(1000);
	/* So that it sleeps, and its place in the queue is that of its number. */
	usleep(10000);
}

FIXTURE(balance) {
	struct worker worker[WORKERS];
	unsigned int workers;
	int listener;
};

FIXTURE_VARIANT(balance) {
	int family;
	int type;
};

FIXTURE_VARIANT_ADD(balance, tcp) { .family = AF_INET, .type = SOCK_STREAM };
FIXTURE_VARIANT_ADD(balance, unix_stream) { .family = AF_UNIX, .type = SOCK_STREAM };
FIXTURE_VARIANT_ADD(balance, unix_seqpacket) { .family = AF_UNIX, .type = SOCK_SEQPACKET };

FIXTURE_SETUP(balance)
{
	self->workers = 0;
	self->listener = listener_open(variant->family, variant->type, 1024);
	ASSERT_GE(self->listener, 0);
	ending = false;
}

FIXTURE_TEARDOWN(balance)
{
	unsigned int i;

	ending = true;
	for (i = 0; i < self->workers; i++) {
		/* One that blocks in accept(2) wants one more connection, each. */
		if (self->worker[i].kind == IN_ACCEPT)
			close(connect_to(self->listener));
	}
	for (i = 0; i < self->workers; i++)
		pthread_join(self->worker[i].thread, NULL);
	close(self->listener);
}

static void start_workers(FIXTURE_DATA(balance) *self, unsigned int count, enum kind kind,
			  unsigned int flags)
{
	while (self->workers < count)
		start(&self->worker[self->workers++], self->listener, kind, flags);
}

/* Makes connections, one at a time, and returns how many the busiest worker accepted. */
static unsigned int most(struct __test_metadata *_metadata, FIXTURE_DATA(balance) *self,
			 unsigned int connections)
{
	unsigned int i, result = 0, before[WORKERS];

	for (i = 0; i < self->workers; i++)
		before[i] = self->worker[i].accepted;
	for (i = 0; i < connections; i++) {
		ASSERT_TRUE(client(self->listener));
		/* The worker goes to sleep again. */
		usleep(1000);
	}
	for (i = 0; i < self->workers; i++) {
		before[i] = self->worker[i].accepted - before[i];
		if (before[i] > result)
			result = before[i];
	}
	return result;
}

/* Without a balance one worker gets most; with it, each a fair share. Also switched on. */
TEST_F(balance, exclusive_workers_in_turn)
{
	int fd;

	start_workers(self, WORKERS, IN_EPOLL, EPOLLEXCLUSIVE);
	EXPECT_GE(most(_metadata, self, 160), 100);
	fd = balance(self->listener, 0);
	ASSERT_GE(fd, 0);
	EXPECT_LE(most(_metadata, self, 160), 24);
	close(fd);
	EXPECT_GE(most(_metadata, self, 160), 100);
}

TEST_F(balance, workers_that_start_later)
{
	int fd = balance(self->listener, 0);

	ASSERT_GE(fd, 0);
	start_workers(self, WORKERS, IN_EPOLL, EPOLLEXCLUSIVE);
	EXPECT_LE(most(_metadata, self, 160), 24);
	close(fd);
}

/* Tasks that block in accept(2) are first come, first served already; that stays. */
TEST_F(balance, blocking_accept_stays_in_order)
{
	int fd = balance(self->listener, 0);

	ASSERT_GE(fd, 0);
	start_workers(self, 2, IN_ACCEPT, 0);
	EXPECT_LE(most(_metadata, self, 40), 24);
	close(fd);
}

TEST_F(balance, one_for_each_socket)
{
	int fd = balance(self->listener, 0);

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EBUSY, balance(self->listener, 0));
	EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	fd = balance(self->listener, FLOWFD_KEEP_ON_EXEC);
	ASSERT_GE(fd, 0);
	EXPECT_FALSE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

/* The close ends the balance and the watches, which leave the socket in different ways. */
TEST_F(balance, listener_that_is_watched_is_closed)
{
	int fd = balance(self->listener, 0), watched[WATCHED];
	struct user_ring ring;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ring_open(&ring, WATCHED));
	for (int i = 0; i < WATCHED; i++) {
		watched[i] = dup(self->listener);
		ASSERT_EQ(0, ring_add(&ring, watched[i], EPOLLIN, i));
	}
	close(self->listener);
	for (int i = 0; i < WATCHED; i++)
		close(watched[i]);
	/* Its items are free again. */
	self->listener = listener_open(variant->family, variant->type, 1);
	for (int i = 0; i < WATCHED; i++) {
		watched[i] = dup(self->listener);
		EXPECT_EQ(0, ring_add(&ring, watched[i], EPOLLIN, i));
	}
	for (int i = 0; i < WATCHED; i++)
		close(watched[i]);
	ring_close(&ring);
	close(fd);
}

/* It is its holder's: a killed holder takes it away. */
TEST_F(balance, holder_is_killed)
{
	int pipes[2], status;
	pid_t child;
	long fd;
	char byte;

	ASSERT_EQ(0, pipe(pipes));
	child = fork();
	if (!child) {
		fd = balance(self->listener, 0);
		if (fd >= 0 && write(pipes[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	ASSERT_EQ(1, read(pipes[0], &byte, 1));
	EXPECT_EQ(-EBUSY, balance(self->listener, 0));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	fd = balance(self->listener, 0);
	EXPECT_GE(fd, 0);
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
}

/* Between two turns of those that disturb: without a rest they take the processors. */
static void rest(void)
{
	usleep(parameter("FLOWFD_REST_US", 200));
}

/* Epolls of others join and leave the queue meanwhile, at both ends. */
static void *come_and_go(void *argument)
{
	int *listener = argument;
	struct epoll_event event = { .events = EPOLLIN };
	unsigned int i = 0;

	while (!ending) {
		int epoll = epoll_create1(EPOLL_CLOEXEC);

		event.events = EPOLLIN | (i++ & 1 ? EPOLLEXCLUSIVE : 0);
		epoll_ctl(epoll, EPOLL_CTL_ADD, *listener, &event);
		if (i & 2)
			epoll_ctl(epoll, EPOLL_CTL_DEL, *listener, NULL);
		close(epoll);
		if (!(i % 16))
			rest();
	}
	return NULL;
}

static void *switch_on_and_off(void *argument)
{
	int *listener = argument;

	while (!ending) {
		int fd = balance(*listener, 0);

		rest();
		close(fd);
		rest();
	}
	return NULL;
}

#define CLIENTS 4
#define IDLE	100 /* epolls; kernels before 6.7 walk 64 entries at a time */

struct load {
	int listener;
	unsigned int clients;
	atomic_uint lost;
};

/* Each client waits until a worker has its connection. */
static void *make_load(void *argument)
{
	struct load *load = argument;
	unsigned int i;

	for (i = 0; i < load->clients && !load->lost; i++)
		load->lost += !client(load->listener);
	return NULL;
}

TEST_F_TIMEOUT(balance, nothing_is_lost, 24 * 3600)
{
	struct load load = { .listener = self->listener };
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t epolls, switcher, clients[CLIENTS];
	unsigned int many = parameter("FLOWFD_IDLE", IDLE), i, sum = 0;
	int idle[many + 1];

	load.clients = parameter("FLOWFD_ROUNDS", 2000) / 4 / CLIENTS + 1;
	for (i = 0; i < many; i++) {
		idle[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_EQ(0, epoll_ctl(idle[i], EPOLL_CTL_ADD, self->listener, &event));
	}
	start_workers(self, WORKERS, IN_EPOLL, EPOLLEXCLUSIVE);
	pthread_create(&epolls, NULL, come_and_go, &self->listener);
	pthread_create(&switcher, NULL, switch_on_and_off, &self->listener);
	for (i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, make_load, &load);
	for (i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	ending = true;
	pthread_join(epolls, NULL);
	pthread_join(switcher, NULL);
	EXPECT_EQ(0, load.lost);
	for (i = 0; i < WORKERS; i++)
		sum += self->worker[i].accepted;
	EXPECT_EQ(load.clients * CLIENTS, sum);
	for (i = 0; i < many; i++)
		close(idle[i]);
}

/* As a tool has another process' socket, which it must not keep open. */
TEST_F(balance, of_a_path)
{
	char name[32];
	int path, fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", self->listener);
	path = open(name, O_PATH | O_CLOEXEC);
	ASSERT_GE(path, 0);
	fd = balance(path, 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EBUSY, balance(self->listener, 0));
	close(self->listener);
	EXPECT_EQ(-EBADF, balance(path, 0));
	close(path);
	close(fd);
	self->listener = listener_open(variant->family, variant->type, 1024);
}

struct paths {
	pthread_t thread;
	int *listener;
	unsigned long balanced;
	unsigned long other;
};

static void *balance_paths(void *argument)
{
	struct paths *p = argument;
	char name[32];

	while (!ending) {
		int path, fd;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", *p->listener);
		path = open(name, O_PATH | O_CLOEXEC);
		fd = balance(path, 0);
		p->balanced += fd >= 0;
		p->other += path < 0 || (fd < 0 && fd != -EBADF && fd != -EBUSY);
		if (fd >= 0)
			close(fd);
		close(path);
		rest();
	}
	return NULL;
}

TEST_F_TIMEOUT(balance, of_a_path_that_is_closed_meanwhile, 300)
{
	struct paths paths[2] = { 0 };
	unsigned int i;
	int fd;

	for (i = 0; i < 2; i++) {
		paths[i].listener = &self->listener;
		pthread_create(&paths[i].thread, NULL, balance_paths, &paths[i]);
	}
	for (i = 0; i < 1000; i++) {
		fd = listener_open(variant->family, variant->type, 1024);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(self->listener, dup3(fd, self->listener, O_CLOEXEC));
		close(fd);
		rest();
	}
	ending = true;
	for (i = 0; i < 2; i++) {
		pthread_join(paths[i].thread, NULL);
		EXPECT_LT(0, paths[i].balanced);
		EXPECT_EQ(0, paths[i].other);
	}
}

/* The arguments are checked in this order, and nothing is balanced after an error. */
TEST(errors)
{
	struct {
		struct flowfd_balance args;
		unsigned long more;
	} longer = { };
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	struct flowfd_create_counter create = { };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
	int path = open("/dev/null", O_PATH | O_CLOEXEC);
	int epoll = epoll_create1(EPOLL_CLOEXEC), pair[2], counter;
	struct epoll_event event = { .events = EPOLLIN };

	ASSERT_EQ(0, bind(tcp, (struct sockaddr *)&in, sizeof(in)));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	EXPECT_EQ(-EBADF, balance(-1, 0));
	EXPECT_EQ(-ENOTSOCK, balance(device, 0));
	EXPECT_EQ(-ENOTSOCK, balance(path, 0));
	EXPECT_EQ(-EINVAL, balance(udp, 0));
	EXPECT_EQ(-EINVAL, balance(tcp, 0));
	EXPECT_EQ(-EINVAL, balance(pair[0], 0));
	ASSERT_EQ(0, listen(tcp, 1));
	EXPECT_EQ(-EINVAL, balance(tcp, 2));
	EXPECT_EQ(-EINVAL, balance(tcp, ~0U));
	longer.args.fd = tcp;
	longer.more = 1;
	EXPECT_EQ(-E2BIG, result_of(ioctl(device, _IOW('J', 0x21, longer), &longer)));
	EXPECT_EQ(-EINVAL, result_of(ioctl(device, _IOW('J', 0x21, __u32), &longer)));
	EXPECT_EQ(-EFAULT, result_of(ioctl(device, FLOWFD_IOC_BALANCE, NULL)));
	counter = ioctl(device, FLOWFD_IOC_CREATE_COUNTER, &create);
	ASSERT_GE(counter, 0);
	EXPECT_EQ(-EPERM, result_of(ioctl(counter, FLOWFD_IOC_BALANCE, &longer)));
	longer.more = 0;
	longer.args.fd = result_of(ioctl(device, _IOW('J', 0x21, longer), &longer));
	EXPECT_LE(0, longer.args.fd);
	/* It has nothing to wait for. */
	EXPECT_EQ(-EPERM, result_of(epoll_ctl(epoll, EPOLL_CTL_ADD, longer.args.fd, &event)));
}

TEST_HARNESS_MAIN
