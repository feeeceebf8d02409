// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file whose poll method asks a FUSE server, which may not answer: only changes of
 * the ring that polls it wait, and nothing of other users does.
 */
#include "fuse_server.h"
#include "ring_user.h"
#include "sockets.h"

#include <sys/inotify.h>

FIXTURE(fuse)
{
	struct fuse_server server;
	struct user_ring ring;
	int file;
};

FIXTURE_SETUP(fuse)
{
	if (!fuse_server_start(&self->server))
		SKIP(return, "no FUSE");
	self->file = open(self->server.file, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->file);
	ASSERT_EQ(0, ring_open(&self->ring, FUSE_FILES_MAX));
}

FIXTURE_TEARDOWN(fuse)
{
	fuse_server_kill(&self->server);
	ring_close(&self->ring);
	close(self->file);
	fuse_server_stop(&self->server);
}

/* A change of a ring in a thread of its own. */
struct change {
	pthread_t thread;
	struct user_ring *ring;
	__u32 op;
	int fd;
	int result;
	bool finished;
};

static void *change_run(void *arg)
{
	struct change *c = arg;

	c->result = c->op == FLOWFD_RING_DEL ? ring_del(c->ring, c->fd) :
					       ring_add(c->ring, c->fd, EPOLLIN, 1);
	__atomic_store_n(&c->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool change_start(struct change *c, struct user_ring *ring, __u32 op,
			 int fd)
{
	*c = (struct change){ .ring = ring, .op = op, .fd = fd };
	return !pthread_create(&c->thread, NULL, change_run, c);
}

static bool change_waits(struct change *c)
{
	sleep_ms(QUIET_MS);
	return !__atomic_load_n(&c->finished, __ATOMIC_ACQUIRE);
}

static bool change_join(struct change *c)
{
	return wait_until_set(&c->finished) && !pthread_join(c->thread, NULL);
}

/* False: the child does not end. */
static bool child_ends(pid_t child, int *status)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (!waitpid(child, status, WNOHANG)) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

static bool kill_child(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	return child_ends(child, &status) && WIFSIGNALED(status);
}

/* All that must work while an ADD holds the lock of the ring. */
TEST_F(fuse, add_waits_and_nobody_else)
{
	int event = eventfd(0, EFD_CLOEXEC), ends[2];
	struct user_ring *r = &self->ring, other;
	struct change add_file, add_other;
	struct ring_event taken;
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_LE(0, ring_add(r, event, EPOLLIN, 2));
	ASSERT_EQ(0, ring_add(r, ends[0], EPOLLIN, 3));
	fuse_mute(&self->server);
	ASSERT_TRUE(change_start(&add_file, r, FLOWFD_RING_ADD, self->file));
	ASSERT_TRUE(fuse_wait_unanswered(&self->server, 1));

	/* The ring delivers events and can be waited for. */
	add(event, 1);
	EXPECT_EQ(1, ring_wait_ms(r, 1, PATIENCE_MS));
	ASSERT_TRUE(ring_take(r, &taken));
	EXPECT_EQ(2, taken.data);
	/* A watched file can be closed: the other side sees it. */
	close(ends[0]);
	EXPECT_EQ(POLLHUP | POLLRDHUP,
		  poll_for(ends[1], POLLRDHUP, PATIENCE_MS));
	/* Other rings watch and wait, also for the same file. */
	EXPECT_LE(0, ring_add(&other, event, EPOLLIN, 4));
	EXPECT_EQ(EPOLLIN, ring_take_only(&other));
	EXPECT_EQ(0, ring_del(&other, event));
	/* fdinfo, which processes read that do not use the ring, such as those of root. */
	EXPECT_EQ(1, fdinfo_number(r->fd, "flowfd-ring-busy", 10));
	EXPECT_EQ(FUSE_FILES_MAX, fdinfo_number(r->fd, "flowfd-ring-max-items", 10));
	EXPECT_EQ(-1, ring_watched(r->fd));
	EXPECT_EQ(0, ring_shown(r->fd));
	/* Changes of this ring wait, and can be killed. */
	child = fork();
	if (!child)
		_exit(ring_del(r, event));
	ASSERT_TRUE(change_start(&add_other, r, FLOWFD_RING_DEL, event));
	EXPECT_TRUE(change_waits(&add_other));
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	EXPECT_TRUE(kill_child(child));

	self->server.control->revents = EPOLLIN;
	fuse_unmute(&self->server);
	ASSERT_TRUE(change_join(&add_file));
	EXPECT_EQ(FLOWFD_RING_PINNED, add_file.result);
	ASSERT_TRUE(change_join(&add_other));
	EXPECT_EQ(0, add_other.result);
	EXPECT_EQ(EPOLLIN, ring_take_only(r));
	/* The watch of the socket has ended meanwhile. */
	EXPECT_EQ(1, ring_watched(r->fd));
	EXPECT_EQ(1, ring_shown(r->fd));
	EXPECT_EQ(ULLONG_MAX, fdinfo_number(r->fd, "flowfd-ring-busy", 10));
	ring_close(&other);
	close(ends[1]);
	close(event);
}

static int watch_directory(const char *name)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return inotify_add_watch(fd, name, IN_ATTRIB) < 0 ? -1 : fd;
}

/* A worker waits for the server: nothing else does, not even DEL of the file. */
TEST_F(fuse, wakeup_waits_and_nobody_else)
{
	struct user_ring *r = &self->ring, other;
	char name[] = "/tmp/dir-XXXXXX";
	int event = eventfd(0, EFD_CLOEXEC), notify, ends[2];
	struct ring_event taken;
	struct change del;

	ASSERT_NE(NULL, mkdtemp(name));
	notify = watch_directory(name);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_LE(0, ring_add(r, self->file, EPOLLIN, 1));
	ASSERT_LE(0, ring_add(r, notify, EPOLLIN, 2));
	ASSERT_LE(0, ring_add(&other, notify, EPOLLIN, 3));
	ASSERT_EQ(0, ring_add(r, ends[0], EPOLLIN, 4));
	fuse_mute(&self->server);
	fuse_command(&self->server, 'n');
	ASSERT_TRUE(fuse_wait_unanswered(&self->server, 1));

	/* Workers poll other files. */
	ASSERT_EQ(0, chmod(name, 0711));
	ASSERT_TRUE(ring_take_wait(r, &taken));
	EXPECT_EQ(2, taken.data);
	ASSERT_TRUE(ring_take_wait(&other, &taken));
	EXPECT_EQ(3, taken.data);
	EXPECT_LE(0, ring_add(r, event, EPOLLIN, 5));
	EXPECT_EQ(0, ring_del(r, event));
	close(ends[0]);
	EXPECT_EQ(POLLHUP | POLLRDHUP,
		  poll_for(ends[1], POLLRDHUP, PATIENCE_MS));

	ASSERT_TRUE(change_start(&del, r, FLOWFD_RING_DEL, self->file));
	ASSERT_TRUE(change_join(&del));
	EXPECT_EQ(0, del.result);
	/*
	 * The late answer must not become an event of the next watch that has this
	 * item.
	 */
	self->server.control->revents = EPOLLIN;
	fuse_unmute(&self->server);
	sleep_ms(QUIET_MS);
	EXPECT_EQ(0, ring_take_only(r));
	ring_close(&other);
	rmdir(name);
}

/*
 * The last reference to a ring may be dropped by a process that exits, by the receiver
 * of a message or by the garbage collector of sockets. None of them may wait for a FUSE
 * server.
 */
TEST_F(fuse, end_of_a_ring_waits_for_nobody)
{
	long users = module_users();
	pid_t child = fork();
	int status;

	if (!child) {
		struct user_ring r;

		if (ring_open(&r, 4) || ring_add(&r, self->file, EPOLLIN, 1) < 0)
			_exit(1);
		fuse_mute(&self->server);
		fuse_command(&self->server, 'n');
		_exit(fuse_wait_unanswered(&self->server, 1) ? 0 : 2);
	}
	ASSERT_TRUE(child_ends(child, &status));
	EXPECT_EQ(0, status);
	/* The worker holds the module until the server answers. */
	EXPECT_LT(users, module_users());
	fuse_unmute(&self->server);
	EXPECT_EQ(users, settled_module_users(users));
}

static bool write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return written;
}

/*
 * A worker has no credentials in a user namespace: it polls with those of the task that
 * added the file.
 */
static int watch_in_namespace(void)
{
	struct fuse_server server;
	struct ring_event event;
	struct user_ring r;
	int fd, ep;

	/* Not root, which the worker is: its user must have no number in there. */
	if (setresgid(54321, 54321, 54321) || setresuid(54321, 54321, 54321) ||
	    prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return 100;
	if (!write_file("/proc/self/setgroups", "deny") ||
	    !write_file("/proc/self/uid_map", "0 54321 1") ||
	    !write_file("/proc/self/gid_map", "0 54321 1"))
		return 101;
	if (!fuse_server_start(&server))
		return 102;
	fd = open(server.file, O_RDONLY | O_CLOEXEC);
	ep = epoll_on(fd, EPOLLIN | EPOLLET);
	if (fd < 0 || ring_open(&r, 4) || ring_add(&r, fd, EPOLLIN, 1) < 0)
		return 103;
	server.control->revents = EPOLLIN;
	fuse_command(&server, 'n');
	if (!ring_take_wait(&r, &event))
		return 1;
	if (event.events != epoll_take(ep, PATIENCE_MS))
		return 2;
	fuse_server_stop(&server);
	return 0;
}

TEST_F(fuse, in_a_namespace_of_users)
{
	pid_t child;
	int status;

	/* As udev has it. */
	ASSERT_EQ(0, chmod("/dev/fuse", 0666));
	child = fork();
	if (!child)
		_exit(watch_in_namespace());
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) >= 100)
		SKIP(return, "no user namespaces, step %d",
		     WEXITSTATUS(status) - 100);
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/*
 * However many rings wait, they must not use up the workers that poll for others. A
 * workqueue runs 256 items or more at a time.
 */
TEST_F_TIMEOUT(fuse, many_wakeups_wait_and_nobody_else, 120)
{
	const rlim_t rings = 600;
	struct rlimit limit = { 2 * rings + 100, 2 * rings + 100 };
	int log = open("/dev/kmsg", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct ring_event taken;
	struct user_ring other;

	/* A device that wakes without a key: a worker polls it. */
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(0, ring_open(&other, 4));
	ASSERT_LE(0, ring_add(&other, log, EPOLLIN, 3));
	for (rlim_t i = 0; i < rings; i++) {
		int fd = open(self->server.file, O_RDONLY | O_CLOEXEC);
		struct flowfd_create_ring args = { .max_items = 1 };
		struct user_ring r = { .fd = ring_create(&args) };

		ASSERT_LE(0, fd);
		ASSERT_LE(0, r.fd);
		ASSERT_LE(0, ring_add(&r, fd, EPOLLIN, 1));
	}
	fuse_mute(&self->server);
	fuse_command(&self->server, 'n');
	ASSERT_TRUE(fuse_wait_unanswered(&self->server, 100));
	/* The kernel may have said something meanwhile. */
	while (ring_take(&other, &taken))
		;
	ASSERT_EQ(1, write(log, "\n", 1));
	EXPECT_TRUE(ring_take_wait(&other, &taken))
		TH_LOG("%lu wait", self->server.control->unanswered);
	fuse_unmute(&self->server);
	ring_close(&other);
	close(log);
}

TEST_F(fuse, server_dies_while_it_is_asked)
{
	struct user_ring *r = &self->ring;
	struct ring_event event;
	struct change add_file;
	int second = open(self->server.file, O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, ring_add(r, second, EPOLLIN, 1));
	fuse_mute(&self->server);
	ASSERT_TRUE(change_start(&add_file, r, FLOWFD_RING_ADD, self->file));
	ASSERT_TRUE(fuse_wait_unanswered(&self->server, 1));
	fuse_command(&self->server, 'n');
	ASSERT_TRUE(fuse_wait_unanswered(&self->server, 2));
	fuse_server_kill(&self->server);
	ASSERT_TRUE(change_join(&add_file));
	EXPECT_EQ(FLOWFD_RING_PINNED, add_file.result);
	/* Neither file can be polled any more. */
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(ring_take_wait(r, &event));
		EXPECT_EQ(EPOLLERR, event.events);
	}
	EXPECT_EQ(0, ring_del(r, second));
	EXPECT_EQ(0, ring_del(r, self->file));
	close(second);
}

TEST_HARNESS_MAIN
