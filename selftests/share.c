// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: who opens what with them, and when they open nothing; opens beside the last
 * close; and that nothing is left of many.
 */
#include "ring_user.h"

#include <sys/wait.h>

#define FIRST_RING (1ULL << 32)
/* How a program gets a key in its environment: as hexadecimal digits. */
#define VARIABLE "FLOWFD_TEST_KEY"
#define NOBODY 65534

static long share(int fd, struct flowfd_share *args)
{
	*args = (struct flowfd_share){ 0 };
	return result_of(ioctl(fd, FLOWFD_IOC_SHARE, args));
}

static long open_on(int device, const struct flowfd_share *args)
{
	return result_of(ioctl(device, FLOWFD_IOC_OPEN, args));
}

static long open_key(const struct flowfd_share *args)
{
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	long fd = device < 0 ? -errno : open_on(device, args);

	close(device);
	return fd;
}

/* The error of opening, or 0. */
static long try_key(const struct flowfd_share *args)
{
	long fd = open_key(args);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Both have the flags of one open file description. Not every kernel has kcmp(2). */
static bool same_file(int a, int b)
{
	bool same;

	set_nonblock(a, true);
	same = fcntl(b, F_GETFL) & O_NONBLOCK;
	set_nonblock(a, false);
	return same && !(fcntl(b, F_GETFL) & O_NONBLOCK);
}

static int open_ring(void)
{
	struct flowfd_create_ring args = { .max_items = 4 };

	return ring_create(&args);
}

static void key_to_text(const struct flowfd_key *key, char *text)
{
	for (size_t i = 0; i < sizeof(*key); i++)
		sprintf(text + 2 * i, "%02x", ((const __u8 *)key)[i]);
}

/* In place of the tests, if there is a key. The status is an errno. */
static void __attribute__((constructor)) open_what_is_in_the_environment(void)
{
	const char *text = getenv(VARIABLE);
	struct flowfd_share args = { 0 };
	unsigned int byte;
	long fd;

	if (!text)
		return;
	for (size_t i = 0; i < sizeof(args.key); i++) {
		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			_exit(EBADMSG);
		((__u8 *)&args.key)[i] = byte;
	}
	fd = open_key(&args);
	/* A ring has no write. */
	if (fd >= 0 && args.key.id < FIRST_RING)
		_exit(add(fd, 1) == 8 ? 0 : errno);
	_exit(fd < 0 ? -fd : 0);
}

FIXTURE(share)
{
	int device;
	long users;	/* of the module, before there is @fd */
	int fd;
	struct flowfd_share args;
};

FIXTURE_VARIANT(share)
{
	bool is_ring;
	enum origin origin;
};

FIXTURE_VARIANT_ADD(share, device) { .origin = OPENED };
FIXTURE_VARIANT_ADD(share, created) { .origin = CREATED };
FIXTURE_VARIANT_ADD(share, set_up) { .origin = SET_UP };
FIXTURE_VARIANT_ADD(share, mapped) { .origin = MAPPED };
FIXTURE_VARIANT_ADD(share, ring) { .is_ring = true };

FIXTURE_SETUP(share)
{
	self->device = open(DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->device);
	self->users = module_users();
	self->fd = variant->is_ring ? open_ring() : open_counter(variant->origin, 0, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, share(self->fd, &self->args));
}

FIXTURE_TEARDOWN(share)
{
	close(self->fd);
	close(self->device);
}

static unsigned long long number_of(int fd)
{
	unsigned long long ring = fdinfo_number(fd, "flowfd-ring-id", 10);

	return ring == ULLONG_MAX ? fdinfo_number(fd, "eventfd-id", 10) :
				    FIRST_RING + ring;
}

TEST_F(share, opens_the_same_file)
{
	struct flowfd_share again;
	int fd = open_on(self->device, &self->args);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(same_file(self->fd, fd));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(number_of(self->fd), self->args.key.id);
	/* Whoever opened it can share it, too: it has one key. */
	ASSERT_EQ(0, share(fd, &again));
	EXPECT_EQ(0, memcmp(&again, &self->args, sizeof(again)));
	close(self->fd);
	self->fd = open_on(self->device, &self->args);
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(same_file(self->fd, fd));
	close(fd);
}

TEST_F(share, keep_on_exec)
{
	int fd;

	self->args.flags = FLOWFD_KEEP_ON_EXEC;
	fd = open_on(self->device, &self->args);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, fcntl(fd, F_GETFD));
	close(fd);
}

static int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Runs this program anew, as a user, with nothing but the key. */
static int exec_with(const struct flowfd_key *key, uid_t user)
{
	char text[2 * sizeof(*key) + 1];
	pid_t child = fork();

	if (!child) {
		key_to_text(key, text);
		setenv(VARIABLE, text, 1);
		if (user && (setgid(user) || setuid(user)))
			_exit(255);
		execl("/proc/self/exe", "share", NULL);
		_exit(254);
	}
	return status_of(child);
}

TEST_F(share, another_process)
{
	EXPECT_EQ(0, exec_with(&self->args.key, 0));
	EXPECT_EQ(0, exec_with(&self->args.key, NOBODY));
	if (!variant->is_ring) {
		EXPECT_EQ(2, count_of(self->fd));
	}
	self->args.key.secret[15] ^= 1;
	EXPECT_EQ(ENOENT, exec_with(&self->args.key, 0));
}

TEST_F(share, each_bit_counts)
{
	struct flowfd_share wrong;

	for (size_t bit = 0; bit < 8 * sizeof(wrong.key); bit++) {
		wrong = self->args;
		((__u8 *)&wrong.key)[bit / 8] ^= 1 << bit % 8;
		ASSERT_EQ(-ENOENT, open_on(self->device, &wrong));
	}
	EXPECT_EQ(0, try_key(&self->args));
}

/* The secret of one opens no other, shared or not. */
TEST_F(share, belongs_to_one)
{
	int counter = open_counter(CREATED, 0, 0), ring = open_ring();
	struct flowfd_share key[2], mixed = self->args;

	ASSERT_LE(0, counter);
	ASSERT_LE(0, ring);
	mixed.key.id = number_of(counter);
	EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));
	mixed.key.id = number_of(ring);
	EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));
	/* Nor does a secret of zeros, as nobody has it. */
	memset(mixed.key.secret, 0, 16);
	EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));
	mixed.key.id = number_of(counter);
	EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));

	ASSERT_EQ(0, share(counter, &key[0]));
	ASSERT_EQ(0, share(ring, &key[1]));
	for (int i = 0; i < 2; i++) {
		EXPECT_NE(0, memcmp(key[i].key.secret, self->args.key.secret, 16));
		mixed = self->args;
		mixed.key.id = key[i].key.id;
		EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));
		mixed = key[i];
		mixed.key.id = self->args.key.id;
		EXPECT_EQ(-ENOENT, open_on(self->device, &mixed));
		EXPECT_EQ(0, try_key(&key[i]));
	}
	close(counter);
	close(ring);
}

static long request(int fd, unsigned long cmd, void *arg)
{
	return result_of(syscall(SYS_ioctl, fd, cmd, arg));
}

TEST_F(share, sizes)
{
	struct {
		struct flowfd_share known;
		__u64 unknown;
	} future = { .known = self->args };
	size_t size = sizeof(future);

	future.unknown = 1;
	EXPECT_EQ(-E2BIG, request(self->fd, resized(FLOWFD_IOC_SHARE, size), &future));
	EXPECT_EQ(-E2BIG, request(self->device, resized(FLOWFD_IOC_OPEN, size), &future));
	future.unknown = 0;
	EXPECT_EQ(0, request(self->fd, resized(FLOWFD_IOC_SHARE, size), &future));
	EXPECT_EQ(0, memcmp(&future.known, &self->args, sizeof(self->args)));
	for (size = 0; size < sizeof(self->args); size++) {
		EXPECT_EQ(-EINVAL, request(self->fd, resized(FLOWFD_IOC_SHARE, size),
					   &future));
		EXPECT_EQ(-EINVAL, request(self->device, resized(FLOWFD_IOC_OPEN, size),
					   &future));
	}
}

TEST_F(share, refused)
{
	struct flowfd_share args;

	EXPECT_EQ(-EFAULT, request(self->fd, FLOWFD_IOC_SHARE, NULL));
	EXPECT_EQ(-EFAULT, request(self->device, FLOWFD_IOC_OPEN, NULL));
	for (int bit = 0; bit < 32; bit++) {
		args = self->args;
		args.flags = 1U << bit;
		EXPECT_EQ(-EINVAL, request(self->fd, FLOWFD_IOC_SHARE, &args));
		if (args.flags != FLOWFD_KEEP_ON_EXEC)
			EXPECT_EQ(-EINVAL, open_on(self->device, &args));
		args = self->args;
		args.reserved = 1U << bit;
		EXPECT_EQ(-EINVAL, request(self->fd, FLOWFD_IOC_SHARE, &args));
		EXPECT_EQ(-EINVAL, open_on(self->device, &args));
	}
	/* What was opened gives no right to open others. */
	if (variant->is_ring || variant->origin != OPENED)
		EXPECT_EQ(-EPERM, open_on(self->fd, &self->args));
	EXPECT_EQ(0, try_key(&self->args));
}

TEST(not_shared)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct flowfd_share args;

	EXPECT_EQ(-ENOTTY, share(event, &args));
	EXPECT_EQ(-ENOTTY, open_on(event, &args));
	close(event);
}

/* Returns the number of a counter that is made now. */
static unsigned long long next_number(void)
{
	int fd = open_counter(CREATED, 0, 0);
	unsigned long long number = number_of(fd);

	close(fd);
	return number;
}

TEST_F(share, after_close)
{
	struct flowfd_create_counter counter = { 0 };
	bool reused = false;
	int others[4];

	close(self->fd);
	EXPECT_EQ(-ENOENT, open_on(self->device, &self->args));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct flowfd_share args;

		others[i] = variant->is_ring ?
			open_ring() :
			ioctl(self->device, FLOWFD_IOC_CREATE_COUNTER, &counter);
		EXPECT_EQ(-ENOENT, open_on(self->device, &self->args));
		ASSERT_EQ(0, share(others[i], &args));
		reused |= args.key.id == self->args.key.id;
		EXPECT_NE(0, memcmp(args.key.secret, self->args.key.secret, 16));
		EXPECT_EQ(-ENOENT, open_on(self->device, &self->args));
		EXPECT_EQ(0, try_key(&args));
	}
	/* Of a counter, another gets the number. */
	EXPECT_EQ(!variant->is_ring, reused);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		close(others[i]);
	self->fd = -1;
}

/* As long as there is a mapping, there is the file. */
TEST_F(share, mapping_keeps_it)
{
	void *map;

	if (!variant->is_ring && variant->origin != MAPPED)
		return;
	map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	close(self->fd);
	self->fd = open_on(self->device, &self->args);
	EXPECT_LE(0, self->fd);
	close(self->fd);
	munmap(map, PAGE);
	self->fd = open_on(self->device, &self->args);
	EXPECT_EQ(-ENOENT, self->fd);
}

/* The key keeps nothing open: a ring sees the last close, and not the first. */
TEST_F(share, last_close_is_seen)
{
	struct user_ring ring = { .fd = -1 };
	int fd;

	if (variant->is_ring)
		return;
	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_LE(0, ring_add(&ring, self->fd, EPOLLIN, 1));
	fd = open_on(self->device, &self->args);
	ASSERT_LE(0, fd);
	close(self->fd);
	EXPECT_EQ(1, ring_watched(ring.fd));
	self->fd = open_on(self->device, &self->args);
	close(self->fd);
	EXPECT_EQ(1, ring_watched(ring.fd));
	self->fd = -1;
	close(fd);
	EXPECT_EQ(0, ring_watched(ring.fd));
	EXPECT_EQ(-ENOENT, open_on(self->device, &self->args));
	ring_close(&ring);
}

/* Modes and settings are of the file. */
TEST(modes)
{
	struct flowfd_flow seal = { .flags = FLOWFD_SEAL };
	int flags[] = { O_RDONLY, O_WRONLY, O_RDWR | O_NONBLOCK };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		int fd = open(DEVICE, flags[i] | O_CLOEXEC), other;
		struct flowfd_share args;
		__u64 value;

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, share(fd, &args));
		other = open_key(&args);
		ASSERT_LE(0, other);
		EXPECT_EQ(flags[i], fcntl(other, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
		EXPECT_EQ(i == 0 ? -EBADF : 8, add(other, 1));
		EXPECT_EQ(i == 1 ? -EBADF : i == 0 ? -EAGAIN : 8,
			  i == 0 ? -EAGAIN : take(other, &value));
		close(other);
		/* What is sealed can be shared, and stays sealed. */
		ASSERT_EQ(0, ioctl(fd, FLOWFD_IOC_SET_FLOW, &seal));
		other = open_key(&args);
		ASSERT_LE(0, other);
		EXPECT_EQ(-EPERM, set_maximum(other, 5));
		EXPECT_EQ(-EPERM, open_on(other, &args));
		close(other);
		close(fd);
	}
}

/* Nothing tells the secret, nor that there is one. */
TEST(fdinfo)
{
	int fd = open_counter(CREATED, 0, 0), info;
	char path[64], text[2][4096] = { "", "" };
	struct flowfd_share args;

	ASSERT_LE(0, fd);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	for (int i = 0; i < 2; i++) {
		info = open(path, O_RDONLY | O_CLOEXEC);
		EXPECT_LT(0, read(info, text[i], sizeof(text[i]) - 1));
		close(info);
		ASSERT_EQ(0, share(fd, &args));
	}
	EXPECT_STREQ(text[0], text[1]);
	close(fd);
}

/* Enters a new user namespace, as a user without rights who becomes its root. */
static bool enter_namespace(void)
{
	return !setgid(NOBODY) && !setuid(NOBODY) && !unshare(CLONE_NEWUSER);
}

enum { NO_NAMESPACES = 77 };

TEST_F(share, another_user_namespace)
{
	struct flowfd_share wrong = self->args, args;
	int ends[2], status;
	pid_t child;

	ASSERT_EQ(0, pipe(ends));
	wrong.key.secret[0] ^= 1;
	child = fork();
	if (!child) {
		int fd;

		if (!enter_namespace())
			_exit(NO_NAMESPACES);
		/* Also not by the descriptor of the other namespace. */
		if (try_key(&self->args) != -ENOENT || try_key(&wrong) != -ENOENT ||
		    open_on(self->device, &self->args) != -ENOENT)
			_exit(1);
		/* What came from there can be shared, but not here. */
		if (share(self->fd, &args) ||
		    memcmp(&args, &self->args, sizeof(args)) || try_key(&args) != -ENOENT)
			_exit(2);
		fd = variant->is_ring ? open_ring() : open_counter(variant->origin, 0, 0);
		if (fd < 0 || share(fd, &args) || try_key(&args))
			_exit(3);
		if (write(ends[1], &args, sizeof(args)) != sizeof(args))
			_exit(4);
		close(ends[1]);
		pause();
	}
	close(ends[1]);
	if (read(ends[0], &args, sizeof(args)) == sizeof(args)) {
		EXPECT_EQ(-ENOENT, try_key(&args));
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	} else {
		status = status_of(child);
		if (status == NO_NAMESPACES)
			SKIP(return, "no user namespaces");
		EXPECT_EQ(0, status);
	}
	close(ends[0]);
	EXPECT_EQ(0, try_key(&self->args));
}

TEST_F(share, full_descriptor_table)
{
	struct rlimit limit = { 64, 64 };
	int fd;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = eventfd(0, EFD_CLOEXEC)) >= 0)
		;
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(-EMFILE, open_on(self->device, &self->args));
	for (fd = 3; fd < 64; fd++) {
		if (fd != self->device && fd != self->fd)
			close(fd);
	}
	EXPECT_EQ(0, try_key(&self->args));
	close(self->fd);
	EXPECT_EQ(self->users, settled_module_users(self->users));
	self->fd = open_on(self->device, &self->args);
	EXPECT_EQ(-ENOENT, self->fd);
}

TEST_F(share, many_opens)
{
	unsigned long rounds = parameter("FLOWFD_OPENS", 5000);

	for (unsigned long i = 0; i < rounds; i++) {
		int fd = open_on(self->device, &self->args);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, close(fd));
	}
	close(self->fd);
	EXPECT_EQ(self->users, settled_module_users(self->users));
	self->fd = open_on(self->device, &self->args);
	EXPECT_EQ(-ENOENT, self->fd);
}

/* Objects in the kernel's caches for 32 bytes, which have the keys; -1: not known. */
static long small_objects(void)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	char line[256], name[64];
	long sum = -1, active;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", name, &active) == 2 &&
		    strlen(name) > 3 && !strncmp(name, "kmalloc", 7) &&
		    !strcmp(name + strlen(name) - 3, "-32"))
			sum = (sum < 0 ? 0 : sum) + active;
	}
	if (f)
		fclose(f);
	return sum;
}

/* Keys are freed with what they open. */
TEST(many_keys)
{
	long keys = parameter("FLOWFD_KEYS", 10000), before = small_objects();
	__u64 end = ms_from_now(TEST_SECONDS * 500);
	struct flowfd_share args;
	long made;

	if (before < 0)
		SKIP(return, "no slabinfo");
	for (made = 0; made < keys && now_ns() < end; made++) {
		int fd = made % 64 ? open_counter(CREATED, 0, 0) : open_ring();

		ASSERT_EQ(0, share(fd, &args));
		ASSERT_EQ(0, try_key(&args));
		close(fd);
	}
	end = ms_from_now(PATIENCE_MS);
	while (small_objects() > before + made / 2 && now_ns() < end)
		sleep_ms(10);
	EXPECT_GE(before + made / 2, small_objects());
}

/* The kernel removes a file from each before it releases it, which takes time. */
#define EPOLLS 16

/* What a thread closes while another opens it. */
struct closing {
	pthread_t thread;
	bool ring;
	bool stop;
	int round;		/* changes when there is another key */
	struct flowfd_share args;
	unsigned long closes;
};

static void *close_again_and_again(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct closing *c = arg;
	unsigned int random = 1;
	int epolls[EPOLLS];

	for (int i = 0; i < EPOLLS; i++)
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		int fd = c->ring ? open_ring() : open_counter(CREATED, 7, 0);

		/* Odd: being changed. */
		__atomic_add_fetch(&c->round, 1, __ATOMIC_SEQ_CST);
		if (share(fd, &c->args))
			break;
		__atomic_add_fetch(&c->round, 1, __ATOMIC_SEQ_CST);
		for (int i = 0; i < EPOLLS; i++)
			epoll_ctl(epolls[i], EPOLL_CTL_ADD, fd, &event);
		spin_ns(rand_r(&random) % 20000);
		close(fd);
		c->closes++;
	}
	for (int i = 0; i < EPOLLS; i++)
		close(epolls[i]);
	return NULL;
}

/* The key of the round; false: it is being changed. */
static bool read_key(struct closing *c, struct flowfd_share *args)
{
	int round = __atomic_load_n(&c->round, __ATOMIC_ACQUIRE);

	*args = c->args;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return round && round % 2 == 0 &&
	       __atomic_load_n(&c->round, __ATOMIC_RELAXED) == round;
}

/* An open that comes too late finds nothing; one in time has a file that works. */
static void race_with_closes(struct __test_metadata *_metadata, bool ring)
{
	__u64 end = now_ns() + stress_ns();
	struct closing c = { .ring = ring };
	unsigned long opened = 0, late = 0;
	int device = open(DEVICE, O_RDWR | O_CLOEXEC);
	unsigned long long next = next_number();
	long users = module_users();

	ASSERT_LE(0, device);
	ASSERT_EQ(0, pthread_create(&c.thread, NULL, close_again_and_again, &c));
	while (now_ns() < end) {
		struct flowfd_share args, again;
		int fd;

		if (!read_key(&c, &args))
			continue;
		fd = open_on(device, &args);
		if (fd < 0) {
			ASSERT_EQ(-ENOENT, fd);
			late++;
			continue;
		}
		opened++;
		ASSERT_EQ(0, share(fd, &again));
		ASSERT_EQ(0, memcmp(&args, &again, sizeof(args)));
		ASSERT_EQ(args.key.id, number_of(fd));
		if (!ring)
			ASSERT_EQ(7, count_of(fd));
		close(fd);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(c.thread, NULL);
	TH_LOG("%lu closes, %lu opens, %lu too late", c.closes, opened, late);
	EXPECT_LT(0, opened);
	EXPECT_LT(0, late);
	EXPECT_EQ(users, settled_module_users(users));
	EXPECT_EQ(next, next_number());
	close(device);
}

TEST(counter_closes_meanwhile)
{
	race_with_closes(_metadata, false);
}

TEST(ring_closes_meanwhile)
{
	race_with_closes(_metadata, true);
}

struct sharer {
	pthread_t thread;
	pthread_barrier_t *meet;
	const int *fd;
	struct flowfd_share args;
	long result;
};

#define SHARE_ROUNDS 2000

static void *share_each(void *arg)
{
	struct sharer *s = arg;

	for (int i = 0; i < SHARE_ROUNDS; i++) {
		pthread_barrier_wait(s->meet);
		s->result = share(*s->fd, &s->args);
		pthread_barrier_wait(s->meet);
	}
	return NULL;
}

TEST(two_share_at_once)
{
	struct sharer sharers[2];
	pthread_barrier_t meet;
	int fd;

	pthread_barrier_init(&meet, NULL, 3);
	for (int i = 0; i < 2; i++) {
		sharers[i] = (struct sharer){ .meet = &meet, .fd = &fd };
		ASSERT_EQ(0, pthread_create(&sharers[i].thread, NULL, share_each,
					    &sharers[i]));
	}
	for (int i = 0; i < SHARE_ROUNDS; i++) {
		fd = open_counter(CREATED, 0, 0);
		pthread_barrier_wait(&meet);
		pthread_barrier_wait(&meet);
		EXPECT_EQ(0, sharers[0].result);
		EXPECT_EQ(0, sharers[1].result);
		EXPECT_EQ(0, memcmp(&sharers[0].args, &sharers[1].args,
				    sizeof(struct flowfd_share)));
		EXPECT_EQ(0, try_key(&sharers[0].args));
		close(fd);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(sharers[i].thread, NULL);
}

TEST_HARNESS_MAIN
