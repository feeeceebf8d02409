// SPDX-License-Identifier: GPL-2.0-only
/*
 * One descriptor: whether it is flowfd's, and what it is. Only the fdinfo of flowfd's
 * own files is read, and that of eventfds if they are asked for, as that of others can block for ever: of an epoll, for instance,
 * while it polls a file of a server in user space.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "look.h"

/* Everything but watches is in the first lines; the module shows 4096 watches. */
#define HEADER_SIZE 4096
#define TEXT_SIZE   (512 * 1024)
#define SHOWN_MAX   4096

static char text[TEXT_SIZE];

/* link_is_eventfd - eventfds that the kernel made have this name, and no path */
bool link_is_eventfd(const char *link)
{
	return !strcmp(link, "anon_inode:[eventfd]");
}

/* link_is_made_by_flowfd - files that ioctl(2) created have this name and no path */
bool link_is_made_by_flowfd(const char *link)
{
	static const char made[] = "anon_inode:[flowfd";

	return !strncmp(link, made, strlen(made));
}

/*
 * is_device - whether a file is the device: a link of /proc, or with "" @directory itself
 *
 * A counter from open(2) has the name that the device has in the process's own mount
 * namespace and root, and any file can have such a name. The device number is certain.
 * It is in the inode: with AT_STATX_DONT_SYNC file systems need not ask a server for it.
 * 9p without a cache asks nevertheless, but only root can mount that.
 */
bool is_device(dev_t device, int directory, const char *name)
{
	struct statx stx;

	return device &&
	       !statx(directory, name,
		      AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, STATX_TYPE,
		      &stx) &&
	       S_ISCHR(stx.stx_mode) &&
	       makedev(stx.stx_rdev_major, stx.stx_rdev_minor) == device;
}

enum file { OTHER_FILE, FLOWFD_FILE, EVENTFD_FILE };

static enum file find_file(struct place *place, int links, const char *number)
{
	dev_t device = place->view->device;
	char link[64];
	ssize_t length;

	length = readlinkat(links, number, link, sizeof(link) - 1);
	/* A path can be longer than readlink(2) allows. */
	if (length < 0 && errno != ENAMETOOLONG) {
		process_failed(place->view, place->process);
		return OTHER_FILE;
	}
	if (length < 0)
		return is_device(device, links, number) ? FLOWFD_FILE : OTHER_FILE;
	link[length] = '\0';
	if (*link == '/' || *link == '(')
		return is_device(device, links, number) ? FLOWFD_FILE : OTHER_FILE;
	if (place->view->also & SCAN_EVENTFDS && link_is_eventfd(link))
		return EVENTFD_FILE;
	return link_is_made_by_flowfd(link) ? FLOWFD_FILE : OTHER_FILE;
}

/**
 * has_room - whether one more of a user fits
 * @all: how many there are
 * @own: how many of these are the user's
 * @max: how many may be there
 *
 * Half is first come, first served; the rest is for users with less than a 16th.
 */
bool has_room(size_t all, size_t own, size_t max)
{
	return all < max / 2 || (all < max && own < max / 16);
}

/*
 * Of several descriptors of a ring, one gets the watches. Returns the place of the
 * ring's ID, which is there if one has got them.
 */
static uint64_t *ring_place(struct view *view, uint64_t id)
{
	uint64_t *ids = view->ring;
	size_t slots = sizeof(view->ring) / sizeof(*view->ring);
	size_t i = id % slots, tries;

	for (tries = 0; tries < 64 && ids[i] && ids[i] != id; tries++)
		i = (i + 1) % slots;
	return &ids[i];
}

/*
 * Reads the rest of the fdinfo of a ring; @text has the first part. Success is the last
 * thing that the descriptor needs to be stored.
 */
static enum fdinfo list_watches(struct place *place, int fd, struct object *object)
{
	uint64_t *ring = ring_place(place->view, object->id);
	struct scan *scan = place->view->scan;
	size_t room = 0;
	enum fdinfo kind;

	if (*ring == object->id)
		return FDINFO_OBJECT;
	if (has_room(scan->watches, place->account->watches, WATCHES_MAX))
		room = WATCHES_MAX - scan->watches;
	if (room > SHOWN_MAX)
		room = SHOWN_MAX;
	if (!text_read_on(fd, text, TEXT_SIZE)) {
		process_failed(place->view, place->process);
		return FDINFO_OTHER;
	}
	kind = fdinfo_parse(text, object, &scan->watch[scan->watches], room);
	if (kind != FDINFO_OBJECT)
		return kind;
	*ring = object->id;
	scan->watches += object->listed;
	place->account->watches += object->listed;
	scan->watches_left += object->watches - object->listed;
	return kind;
}

static void add(struct place *place, int fd, const struct object *object)
{
	struct scan *scan = place->view->scan;
	struct descriptor *descriptor = &scan->descriptor[scan->count];

	descriptor->pid = place->id;
	descriptor->fd = fd;
	descriptor->uid = place->view->turn->uid;
	memcpy(descriptor->command, place->command, COMMAND_SIZE);
	descriptor->time = place->time;
	descriptor->object = *object;
	place->account->descriptors++;
	/* Last: a parent that stopped waiting sees only complete descriptors. */
	__atomic_store_n(&scan->count, scan->count + 1, __ATOMIC_RELEASE);
}

/* A name can contain newlines; only the last one ends it. */
static bool read_command(struct place *place)
{
	size_t length;

	if (*place->command)
		return true;
	if (!file_read(place->directory, "comm", place->command, COMMAND_SIZE)) {
		*place->command = '\0';
		process_failed(place->view, place->process);
		return false;
	}
	length = strlen(place->command);
	if (length)
		place->command[length - 1] = '\0';
	return true;
}

static void look_at_text(struct place *place, int fd, int number)
{
	struct scan *scan = place->view->scan;
	struct object object;
	enum fdinfo kind = fdinfo_parse(text, &object, NULL, 0);

	if (fdinfo_is_cut(text, HEADER_SIZE)) {
		errno = EFBIG;
		process_failed(place->view, place->process);
		return;
	}
	if (kind == FDINFO_OBJECT &&
	    !has_room(scan->count, place->account->descriptors, DESCRIPTORS_MAX)) {
		scan->no_room++;
		return;
	}
	if (kind == FDINFO_OBJECT && !read_command(place))
		return;
	if (kind == FDINFO_OBJECT && object.watches && place->view->also & SCAN_WATCHES)
		kind = list_watches(place, fd, &object);
	scan->unknown += kind == FDINFO_UNKNOWN;
	if (kind == FDINFO_OBJECT)
		add(place, number, &object);
}

static void look_at_eventfd(struct place *place, int number)
{
	struct scan *scan = place->view->scan;
	struct eventfd *eventfd = &scan->eventfd[scan->eventfds];
	uint64_t id;

	if (!fdinfo_eventfd(text, &id)) {
		/* Its lines can be further back, as those of flowfd's files. */
		errno = strlen(text) == HEADER_SIZE - 1 ? EFBIG : EPROTO;
		process_failed(place->view, place->process);
		return;
	}
	if (!has_room(scan->eventfds, place->account->eventfds, EVENTFDS_MAX)) {
		scan->no_room++;
		return;
	}
	if (!read_command(place))
		return;
	eventfd->pid = place->id;
	eventfd->fd = number;
	memcpy(eventfd->command, place->command, COMMAND_SIZE);
	eventfd->id = id;
	place->account->eventfds++;
	/* Last, as in add(). */
	__atomic_store_n(&scan->eventfds, scan->eventfds + 1, __ATOMIC_RELEASE);
}

/**
 * descriptor_look - store a descriptor if it is flowfd's, or an eventfd that is asked for
 * @place: table of descriptors that has it
 * @links: open directory of the links of that table
 * @number: its number, as text
 */
void descriptor_look(struct place *place, int links, const char *number)
{
	enum file file;
	char name[32];
	bool done;
	int fd;

	place->view->steps++;
	file = find_file(place, links, number);
	if (file == OTHER_FILE)
		return;
	snprintf(name, sizeof(name), "fdinfo/%.16s", number);
	fd = openat(place->directory, name, O_RDONLY | O_CLOEXEC);
	*text = '\0';
	/* The numbers are of about this time: a whole scan can take long. */
	place->time = now_ns();
	done = fd >= 0 && text_read_on(fd, text, HEADER_SIZE);
	place->time += (now_ns() - place->time) / 2;
	if (!done)
		process_failed(place->view, place->process);
	else if (file == EVENTFD_FILE)
		look_at_eventfd(place, atoi(number));
	else
		look_at_text(place, fd, atoi(number));
	if (fd >= 0)
		close(fd);
}
