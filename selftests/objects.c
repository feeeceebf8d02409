// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of all counters and rings in debugfs: who may read it, what it has, and readers
 * beside counters, rings, mapped counters and bridges that come and go.
 */
#include "bridge_user.h"
#include "ring_user.h"
#include "selftest.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#define LIST "/sys/kernel/debug/flowfd/objects"
#define TEXT_SIZE (64 << 20)

/* Reads to the end, in parts of a size; returns false on an error, or if there is no end. */
static bool read_all(int fd, char *text, size_t part)
{
	size_t length = 0;
	ssize_t got = 1;

	while (got > 0 && length + part < TEXT_SIZE) {
		got = read(fd, text + length, part);
		length += got > 0 ? got : 0;
	}
	text[length] = '\0';
	return !got;
}

static bool read_list(char *text, size_t part)
{
	int fd = open(LIST, O_RDONLY | O_CLOEXEC);
	bool ended = read_all(fd, text, part);

	close(fd);
	return ended;
}

/* The lines of a counter or ring in the list; NULL: none. */
static const char *find_object(const char *text, const char *key, unsigned long long id)
{
	const char *object, *end;
	char line[64];

	snprintf(line, sizeof(line), "\n%s: %llu\n", key, id);
	for (object = text; (end = strstr(object, "\n\n")); object = end + 2) {
		const char *found = strstr(object, line);

		if (found && found < end)
			return object;
	}
	return NULL;
}

FIXTURE(objects)
{
	char *text;
};

FIXTURE_SETUP(objects)
{
	if (access("/sys/kernel/debug/tracing", F_OK) && access(LIST, F_OK))
		SKIP(return, "no debugfs");
	self->text = malloc(TEXT_SIZE);
	ASSERT_NE(NULL, self->text);
}

FIXTURE_TEARDOWN(objects)
{
	free(self->text);
}

TEST_F(objects, only_root_reads)
{
	struct stat st;

	ASSERT_EQ(0, stat(LIST, &st));
	EXPECT_EQ(S_IFREG | 0400, st.st_mode);
	EXPECT_EQ(0, st.st_uid);
	/* Root of a kernel that is not locked down may, but it has no method for it. */
	int fd = open(LIST, O_RDWR);

	EXPECT_GT(0, write(fd, "x", 1));
	close(fd);
}

static void expect_fdinfo(struct __test_metadata *_metadata, const char *text, int fd,
			  const char *first, const char *key)
{
	const char *object = find_object(text, key, fdinfo_number(fd, key, 10));
	char path[64], info[4096], creator[64], *line;
	int file;
	ssize_t length;

	ASSERT_NE(NULL, object);
	snprintf(creator, sizeof(creator), "flowfd-uid: 0\nflowfd-pid: %d\n", getpid());
	EXPECT_EQ(0, strncmp(object, creator, strlen(creator)));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = open(path, O_RDONLY);
	length = read(file, info, sizeof(info) - 1);
	close(file);
	ASSERT_LT(0, length);
	info[length] = '\0';
	line = strstr(info, first);
	object = strstr(object, first);
	ASSERT_NE(NULL, line);
	ASSERT_NE(NULL, object);
	EXPECT_EQ(0, strncmp(object, line, strlen(line)));
	EXPECT_EQ('\n', object[strlen(line)]);
}

TEST_F(objects, has_what_fdinfo_has)
{
	int fd = open_counter(CREATED, 5, 0), id;
	struct user_ring ring;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_TRUE(read_list(self->text, 65536));
	expect_fdinfo(_metadata, self->text, fd, "eventfd-count", "eventfd-id");
	expect_fdinfo(_metadata, self->text, ring.fd, "flowfd-ring-id", "flowfd-ring-id");
	id = id_of(fd);
	close(fd);
	ring_close(&ring);
	ASSERT_TRUE(read_list(self->text, 65536));
	EXPECT_EQ(NULL, find_object(self->text, "eventfd-id", id));
}

/* A name cannot begin a line, and its backslashes are told from escapes. */
TEST_F(objects, name_with_newlines)
{
	int fd;

	ASSERT_EQ(0, prctl(PR_SET_NAME, "a\n\nb\\c\nd: 1"));
	fd = open_counter(CREATED, 0, 0);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(read_list(self->text, 65536));
	EXPECT_NE(NULL, strstr(self->text, "\nflowfd-comm: a\\012\\012b\\134c\\012d: 1\n"));
	EXPECT_EQ(NULL, strstr(self->text, "\nb"));
	close(fd);
}

struct churn {
	pthread_t thread;
	bool stop;
	unsigned long rounds;
};

static void *come_and_go(void *arg)
{
	struct flowfd_create_counter mapped = { .flags = FLOWFD_MAPPED };
	struct churn *churn = arg;
	struct user_ring ring;
	int fd, event, map;

	while (!__atomic_load_n(&churn->stop, __ATOMIC_RELAXED)) {
		fd = open_counter(CREATED, 1, 0);
		map = create_counter(&mapped);
		event = eventfd(0, EFD_NONBLOCK);
		if (fd >= 0 && event >= 0)
			bridge(fd, event, FLOWFD_BRIDGE_SINK);
		if (event >= 0 && !ring_open(&ring, 4)) {
			ring_add(&ring, event, EPOLLIN, 1);
			ring_close(&ring);
		}
		close(event);
		close(map);
		close(fd);
		churn->rounds++;
	}
	return NULL;
}

/* In parts of any size; what stays is in each list once. */
TEST_F(objects, beside_what_comes_and_goes)
{
	__u64 end = now_ns() + stress_ns();
	struct churn churn[2] = { 0 };
	struct user_ring ring;
	unsigned int size = 1;
	int counter[20];

	for (int i = 0; i < 20; i++)
		ASSERT_LE(0, counter[i] = open_counter(CREATED, i, 0));
	ASSERT_EQ(0, ring_open(&ring, 4));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&churn[i].thread, NULL, come_and_go,
					    &churn[i]));
	while (now_ns() < end) {
		const char *object = self->text;

		ASSERT_TRUE(read_list(self->text, 100 + size * 7919 % 100000));
		size++;
		for (int i = 0; i < 20; i++) {
			object = find_object(object, "eventfd-id", id_of(counter[i]));
			ASSERT_NE(NULL, object);
			object = strstr(object, "\n\n") + 2;
			EXPECT_EQ(NULL, find_object(object, "eventfd-id",
						    id_of(counter[i])));
		}
		EXPECT_NE(NULL, find_object(self->text, "flowfd-ring-id",
					    fdinfo_number(ring.fd, "flowfd-ring-id", 10)));
	}
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&churn[i].stop, true, __ATOMIC_RELAXED);
		pthread_join(churn[i].thread, NULL);
		EXPECT_LT(0, churn[i].rounds);
	}
	ring_close(&ring);
	for (int i = 0; i < 20; i++)
		close(counter[i]);
}

/* A file that is open in the list keeps the module, and has no ring of later. */
TEST_F(objects, ends_although_rings_come)
{
	int fd = open(LIST, O_RDONLY | O_CLOEXEC);
	long users = module_users();
	struct user_ring ring;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_open(&ring, 4));
	ASSERT_TRUE(read_all(fd, self->text, 65536));
	EXPECT_EQ(NULL, find_object(self->text, "flowfd-ring-id",
				    fdinfo_number(ring.fd, "flowfd-ring-id", 10)));
	ring_close(&ring);
	close(fd);
	EXPECT_EQ(users - 1, settled_module_users(users - 1));
}

TEST_HARNESS_MAIN
