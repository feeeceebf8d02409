// SPDX-License-Identifier: MIT
/*
 * Writes reports, in any thread, also in a signal handler with little stack, of
 * which printf(3) would take 2 KB. A report must not end up in a file of the
 * program: descriptor 2 is used only while it is the file that flowfd-run had there.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/log.h"
#include "preload/next.h"

/* glibc has it since 2.32, musl does not. */
extern const char *strerrorname_np(int error) __attribute__((weak));

bool log_wanted(const struct context *context)
{
	return context->settings.verbose || *context->log;
}

void line_text(struct line *line, const char *text)
{
	size_t room = sizeof(line->text) - 1 - line->length;
	size_t length = strnlen(text, room);

	memcpy(line->text + line->length, text, length);
	line->length += length;
}

void line_number(struct line *line, long number)
{
	unsigned long rest = number < 0 ? -(unsigned long)number : (unsigned long)number;
	char digits[3 * sizeof(number) + 1];
	char *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do {
		*--first = '0' + rest % 10;
		rest /= 10;
	} while (rest);
	if (number < 0)
		line_text(line, "-");
	line_text(line, first);
}

void line_error(struct line *line, int error)
{
	const char *name = strerrorname_np ? strerrorname_np(error) : NULL;

	if (name) {
		line_text(line, name);
	} else {
		line_text(line, "error ");
		line_number(line, error);
	}
}

void line_begin(struct line *line)
{
	line->length = 0;
	line_text(line, "flowfd-run[");
	line_number(line, getpid());
	line_text(line, "]: ");
}

/* statx(2), as struct stat differs between architectures and between C libraries. */
static bool stderr_is_ours(const struct settings *settings)
{
	struct statx status;
	const long arguments[6] = { STDERR_FILENO, (long)"", AT_EMPTY_PATH, STATX_INO,
				    (long)&status };

	return next_syscall(SYS_statx, arguments) == 0 &&
	       status.stx_dev_major == settings->device_major &&
	       status.stx_dev_minor == settings->device_minor &&
	       status.stx_ino == settings->inode;
}

/* The kernel's signal set; sigset_t of libc is larger. */
struct signals {
	unsigned long words[_NSIG / 8 / sizeof(unsigned long)];
};

static struct signals only(int signal)
{
	return (struct signals){ .words = { 1UL << (signal - 1) } };
}

/*
 * SIGPIPE and SIGXFSZ of a report must not end the program. If the program had such a
 * signal pending before, it stays pending.
 */
static void write_line(long fd, const struct line *line)
{
	const struct timespec now = { 0 };
	struct signals ours = only(SIGPIPE);
	struct signals before;
	struct signals waiting = { 0 };
	long ret;
	int signal;

	ours.words[0] |= only(SIGXFSZ).words[0];
	if (next_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&ours, (long)&before,
		      sizeof(ours)) < 0)
		return;
	next_call(SYS_rt_sigpending, (long)&waiting, sizeof(waiting), 0, 0);
	ret = next_call(SYS_write, fd, (long)line->text, line->length, 0);
	signal = ret == -EPIPE ? SIGPIPE : ret == -EFBIG ? SIGXFSZ : 0;
	if (signal) {
		ours = only(signal);
		if (!(waiting.words[0] & ours.words[0]))
			next_call(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&now,
				  sizeof(ours));
	}
	next_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before));
}

/*
 * Opens the file for each line: the program may close all descriptors at any time.
 * flowfd-run has resolved symbolic links in @path.
 */
static void append(const char *path, const struct line *line)
{
	long fd = next_call(
		SYS_openat, AT_FDCWD, (long)path,
		O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0)
		return;
	write_line(fd, line);
	next_call(SYS_close, fd, 0, 0, 0);
}

void line_end(struct line *line, const struct context *context)
{
	int saved = errno;

	line->text[line->length++] = '\n';
	if (*context->log)
		append(context->log, line);
	else if (stderr_is_ours(&context->settings))
		write_line(STDERR_FILENO, line);
	errno = saved;
}
