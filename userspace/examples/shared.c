// SPDX-License-Identifier: MIT
/*
 * Two processes that have nothing in common but a file: the first waits for the second,
 * which opens its counter by the key in the file.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <flowfd.h>

static int check(const char *what, int result)
{
	if (result < 0)
		errx(1, "%s: %s", what, flowfd_strerror(result));
	return result;
}

static void wait_for_another(const char *path)
{
	int counter = check("create", flowfd_counter_create(0, 0));
	struct flowfd_key key;
	uint64_t count;
	int file;

	check("share", flowfd_share(counter, &key));
	/* The mode says who may open the counter. */
	file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (file < 0)
		err(1, "%s", path);
	/* For a short write, which sets none. */
	errno = ENOSPC;
	if (write(file, &key, sizeof(key)) != sizeof(key)) {
		warn("%s: the key was not written", path);
		unlink(path);
		exit(1);
	}
	check("read", flowfd_read(counter, &count));
	printf("%" PRIu64 "\n", count);
	unlink(path);
}

static void wake(int file)
{
	struct flowfd_key key;
	int counter;

	if (read(file, &key, sizeof(key)) != sizeof(key))
		errx(1, "there is no key yet");
	/* If the first one was killed, the file is there: remove it then. */
	counter = check("open", flowfd_open_shared(&key, 0));
	check("write", flowfd_write(counter, 3));
}

int main(int argc, char *argv[])
{
	const char *path = argc > 1 ? argv[1] : "key";
	int file = open(path, O_RDONLY);

	if (file >= 0)
		wake(file);
	else if (errno == ENOENT)
		wait_for_another(path);
	else
		err(1, "%s", path);
	return 0;
}
