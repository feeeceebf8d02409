/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FUSE file system with one file, "file", in a process of its own. The test controls
 * what it answers to polls, and whether it does.
 */
#ifndef FUSE_SERVER_H
#define FUSE_SERVER_H

#include "selftest.h"

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/fuse.h>

#define FUSE_FILES_MAX 4096

/* Shared with the server. */
struct fuse_control {
	__u32 revents;		/* its answer */
	bool mute;		/* it does not answer polls */
	unsigned long unanswered;
};

struct fuse_server {
	struct fuse_control *control;
	pid_t pid;
	int commands;
	char directory[32];
	char file[48];
};

/* State of the server. */
struct fuse_state {
	struct fuse_control *control;
	int device;
	__u64 handles;
	__u64 kernel_handles[FUSE_FILES_MAX];
	__u64 unanswered[FUSE_FILES_MAX];
};

static inline void fuse_reply(struct fuse_state *s, __u64 unique, int error,
			      const void *data, size_t size)
{
	struct fuse_out_header header = { .len = sizeof(header) + size,
					  .error = error, .unique = unique };
	char message[256];

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), data, size);
	/* Fails if the asking task is gone. */
	if (write(s->device, message, header.len) < 0)
		return;
}

static inline void fuse_reply_poll(struct fuse_state *s, __u64 unique)
{
	struct fuse_poll_out out = { .revents = s->control->revents };

	fuse_reply(s, unique, 0, &out, sizeof(out));
}

static inline struct fuse_attr fuse_attr(__u64 node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
	};
}

static inline void fuse_poll(struct fuse_state *s, __u64 unique,
			     const struct fuse_poll_in *in)
{
	struct fuse_control *c = s->control;

	if (in->flags & FUSE_POLL_SCHEDULE_NOTIFY)
		s->kernel_handles[in->fh] = in->kh;
	if (c->mute)
		s->unanswered[c->unanswered++] = unique;
	else
		fuse_reply_poll(s, unique);
}

static inline void fuse_request(struct fuse_state *s,
				const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = FUSE_KERNEL_MINOR_VERSION,
				      .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = 2, .attr = fuse_attr(2) };
	struct fuse_attr_out attr = { .attr = fuse_attr(in->nodeid) };
	struct fuse_open_out open_out = { .open_flags = FOPEN_NONSEEKABLE };

	switch (in->opcode) {
	case FUSE_INIT:
		fuse_reply(s, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		fuse_reply(s, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		fuse_reply(s, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		open_out.fh = s->handles++ % FUSE_FILES_MAX;
		fuse_reply(s, in->unique, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_POLL:
		fuse_poll(s, in->unique, (const void *)(in + 1));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		fuse_reply(s, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		fuse_reply(s, in->unique, -ENOSYS, NULL, 0);
	}
}

/* Wakes the pollers of all open files, as a driver does that has data. */
static inline void fuse_notify_all(struct fuse_state *s)
{
	for (__u64 i = 0; i < s->handles && i < FUSE_FILES_MAX; i++) {
		struct {
			struct fuse_out_header header;
			struct fuse_notify_poll_wakeup_out wakeup;
		} message = {
			.header = { .len = sizeof(message),
				    .error = FUSE_NOTIFY_POLL },
			.wakeup = { .kh = s->kernel_handles[i] },
		};

		if (write(s->device, &message, sizeof(message)) < 0)
			continue;
	}
}

static inline void fuse_answer_all(struct fuse_state *s)
{
	struct fuse_control *c = s->control;

	while (c->unanswered)
		fuse_reply_poll(s, s->unanswered[--c->unanswered]);
}

static inline void fuse_serve(struct fuse_state *s, int commands)
{
	static char buffer[FUSE_MIN_READ_BUFFER + 4096];
	struct pollfd p[2] = { { .fd = s->device, .events = POLLIN },
			       { .fd = commands, .events = POLLIN } };
	char command;

	while (poll(p, 2, -1) > 0) {
		if (p[0].revents) {
			if (read(s->device, buffer, sizeof(buffer)) < 0)
				return;
			fuse_request(s, (const void *)buffer);
		} else if (p[1].revents) {
			if (read(commands, &command, 1) != 1)
				return;
			if (command == 'n')
				fuse_notify_all(s);
			else
				fuse_answer_all(s);
		}
	}
}

static inline void fuse_server_run(const char *directory,
				   struct fuse_control *control, int commands)
{
	static struct fuse_state state;
	char options[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	state.control = control;
	state.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", state.device);
	if (state.device < 0 ||
	    mount("flowfd-test", directory, "fuse", MS_NOSUID | MS_NODEV,
		  options))
		_exit(1);
	fuse_serve(&state, commands);
	_exit(0);
}

static inline void fuse_command(struct fuse_server *f, char command)
{
	if (write(f->commands, &command, 1) != 1)
		abort();
}

/* Answers polls again, first those that wait. */
static inline void fuse_unmute(struct fuse_server *f)
{
	__atomic_store_n(&f->control->mute, false, __ATOMIC_SEQ_CST);
	fuse_command(f, 'a');
}

static inline void fuse_mute(struct fuse_server *f)
{
	__atomic_store_n(&f->control->mute, true, __ATOMIC_SEQ_CST);
}

static inline bool fuse_wait_unanswered(struct fuse_server *f, unsigned long n)
{
	__u64 end = ms_from_now(PATIENCE_MS);

	while (__atomic_load_n(&f->control->unanswered, __ATOMIC_SEQ_CST) < n) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

static inline bool fuse_is_mounted(const struct fuse_server *f)
{
	__u64 end = ms_from_now(PATIENCE_MS);
	struct stat st;

	while (stat(f->file, &st)) {
		if (now_ns() > end || waitpid(f->pid, NULL, WNOHANG))
			return false;
		sleep_ms(1);
	}
	return true;
}

/* False: no FUSE. */
static inline bool fuse_server_start(struct fuse_server *f)
{
	int commands[2];

	*f = (struct fuse_server){ .directory = "/tmp/fuse-XXXXXX" };
	f->control = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->control == MAP_FAILED || pipe2(commands, O_CLOEXEC) ||
	    system("modprobe -q fuse") || !mkdtemp(f->directory))
		return false;
	snprintf(f->file, sizeof(f->file), "%s/file", f->directory);
	f->pid = fork();
	if (!f->pid) {
		close(commands[1]);
		fuse_server_run(f->directory, f->control, commands[0]);
	}
	close(commands[0]);
	f->commands = commands[1];
	return fuse_is_mounted(f);
}

/* Ends the connection, and thereby every poll that waits for an answer. */
static inline void fuse_server_kill(struct fuse_server *f)
{
	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		waitpid(f->pid, NULL, 0);
		f->pid = 0;
	}
}

static inline void fuse_server_stop(struct fuse_server *f)
{
	fuse_server_kill(f);
	umount2(f->directory, MNT_DETACH);
	rmdir(f->directory);
	close(f->commands);
}

#endif /* FUSE_SERVER_H */
