// SPDX-License-Identifier: MIT
/*
 * A ring without the module. Its descriptor is that of an epoll(7), in which there is an
 * eventfd(2) as well, the doorbell: a post rings it if somebody may sleep. docs/ring.md
 * has the protocol, and what is not as with the module.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "epoll.h"
#include "memory.h"
#include "ring_epoll.h"
#include "watches.h"

/* States of @armed. */
enum {
	RUNG = 0,    /* or a thread rings that cannot be interrupted in between */
	ARMED = 1,   /* the next post must ring */
	RINGING = 2, /* a thread rings; if it does not end, the next post does */
};

/* Tags of epoll that are no item's. */
#define TAG_DOORBELL UINT64_MAX
#define TAG_NOBODY   (UINT64_MAX - 1)

/* Events that a system call takes from epoll at most. */
#define BATCH 64

#define WATCH_EVENTS                                                         \
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDNORM | \
	 EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | EPOLLMSG | EPOLLRDHUP)

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* As the module does. */
static struct flowfd_ring_header layout_of(uint32_t max_items)
{
	struct flowfd_ring_header layout = {
		.magic = FLOWFD_RING_MAGIC,
		.version = FLOWFD_RING_VERSION,
		.header_size = sizeof(layout),
		.max_items = max_items,
		.items_offset = sizeof(layout),
		.index_slots = 1,
	};
	uint32_t items_size = max_items * (uint32_t)sizeof(struct flowfd_ring_item);

	while (layout.index_slots < max_items)
		layout.index_slots *= 2;
	layout.index_offset = round_up(layout.items_offset + items_size, 64);
	layout.map_size = round_up(
		layout.index_offset + (layout.index_slots + 1) * (uint32_t)sizeof(uint32_t),
		(uint32_t)sysconf(_SC_PAGESIZE));
	return layout;
}

/* Shared with children, which may post. */
static int map_memory(struct flowfd_ring *ring, uint32_t max_items)
{
	struct flowfd_ring_header layout = layout_of(max_items);
	void *map = NULL;
	int ret = flowfd__map(&map, layout.map_size, PROT_READ | PROT_WRITE, -1, 0);

	if (ret)
		return ret;
	*ring = (struct flowfd_ring){
		.mask = layout.index_slots - 1,
		.max_items = max_items,
		.header = map,
		.items = (void *)((char *)map + layout.items_offset),
		.index = (void *)((char *)map + layout.index_offset),
		.map_size = layout.map_size,
	};
	*ring->header = layout;
	ring->header->armed = ARMED;
	return 0;
}

static int open_doorbell(void)
{
	int saved = errno, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0) {
		fd = -errno;
		errno = saved;
	}
	return fd;
}

static int open_descriptors(struct flowfd_ring *ring)
{
	int ret;

	ring->fd = flowfd__epoll_open();
	if (ring->fd < 0)
		return ring->fd;
	ring->doorbell = open_doorbell();
	ret = ring->doorbell;
	if (ret >= 0) {
		/* Level-triggered: readable until it is drained. */
		ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, ring->doorbell, EPOLLIN,
					    TAG_DOORBELL);
		if (!ret)
			return 0;
		flowfd__close(ring->doorbell);
	}
	flowfd__close(ring->fd);
	return ret;
}

int flowfd__ring_epoll_create(struct flowfd_ring *ring, uint32_t max_items,
			      unsigned int flags)
{
	struct flowfd_ring new;
	int ret;

	if (!max_items || max_items > FLOWFD_RING_ITEMS_MAX || flags & ~FLOWFD_KEEP_ON_EXEC)
		return -EINVAL;
	/* A program that is executed could do nothing with it. */
	if (flags & FLOWFD_KEEP_ON_EXEC)
		return -EOPNOTSUPP;
	ret = map_memory(&new, max_items);
	if (ret)
		return ret;
	ret = flowfd__watches_alloc(&new.watches, max_items, new.mask + 1);
	if (ret)
		goto unmap;
	ret = open_descriptors(&new);
	if (ret)
		goto free_watches;
	*ring = new;
	return 0;

free_watches:
	flowfd__watches_free(new.watches, max_items, new.mask + 1);
unmap:
	flowfd__unmap(new.header, new.map_size);
	return ret;
}

void flowfd__ring_epoll_destroy(struct flowfd_ring *ring)
{
	flowfd__watches_free(ring->watches, ring->max_items, ring->mask + 1);
	flowfd__close(ring->doorbell);
}

/* ---- Watching. All of this is under the lock. ---- */

/* As flowfd_ring_clear_item() and flowfd_ring_set_item() of the module. */
static void clear_item(const struct flowfd_ring *ring, uint32_t number)
{
	__atomic_exchange_n(&ring->items[number].ready, 0, __ATOMIC_SEQ_CST);
}

static void set_item(const struct flowfd_ring *ring, uint32_t number, uint64_t data)
{
	clear_item(ring, number);
	__atomic_store_n(&ring->items[number].data, data, __ATOMIC_RELAXED);
}

static void remove_item(const struct flowfd_ring *ring, uint32_t number)
{
	flowfd__watches_remove(ring->watches, number);
	clear_item(ring, number);
}

struct sweep {
	struct flowfd_watches *watches;
	bool found_doorbell;
};

static void mark_open(void *argument, uint64_t tag)
{
	struct sweep *sweep = argument;
	int number = flowfd__watches_number(sweep->watches, tag);

	if (tag == TAG_DOORBELL)
		sweep->found_doorbell = true;
	else if (number >= 0)
		sweep->watches->owners[number].is_open = true;
}

/*
 * epoll forgets a file by itself when it is closed, and tells nobody. Its list says which
 * files are left; the items of all others become free.
 */
static void remove_closed(const struct flowfd_ring *ring)
{
	struct flowfd_watches *w = ring->watches;
	struct sweep sweep = { .watches = w };
	struct flowfd__owner *owner;
	uint32_t i;

	for (i = 0; i < w->used; i++)
		w->owners[i].is_open = false;
	/* Without its own eventfd it is not the list, or not all of it. */
	if (flowfd__epoll_list(ring->fd, mark_open, &sweep) || !sweep.found_doorbell)
		return;
	for (i = 0; i < w->used; i++) {
		owner = &w->owners[i];
		if (!owner->is_open &&
		    (owner->kind == FLOWFD__FILE || owner->kind == FLOWFD__RENAMED))
			remove_item(ring, i);
	}
}

static int take_item(const struct flowfd_ring *ring)
{
	int number = flowfd__watches_take_item(ring->watches, ring->items);

	if (number >= 0)
		return number;
	remove_closed(ring);
	return flowfd__watches_take_item(ring->watches, ring->items);
}

/* The ring is full: other errors come first, as with the module. */
static int refuse_file(const struct flowfd_ring *ring, int fd)
{
	int ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, fd, 0, TAG_NOBODY);

	if (ret)
		return ret;
	flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, fd, 0, 0);
	return -ENOSPC;
}

/* An epoll says that it does not watch the doorbell, any other file that it is none. */
static bool is_epoll(const struct flowfd_ring *ring, int fd)
{
	return flowfd__epoll_control(fd, EPOLL_CTL_DEL, ring->doorbell, 0, 0) == -ENOENT;
}

static int add_file(const struct flowfd_ring *ring, const struct flowfd_ring_entry *entry)
{
	struct flowfd_watches *w = ring->watches;
	int number, ret;
	uint64_t tag;

	if (entry->fd == ring->fd || is_epoll(ring, entry->fd))
		return -ELOOP;
	number = take_item(ring);
	if (number < 0)
		return refuse_file(ring, entry->fd);
	set_item(ring, (uint32_t)number, entry->data);
	tag = flowfd__watches_tag(w, (uint32_t)number);
	ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, entry->fd, entry->events, tag);
	/* It was removed by its data when this number was not its own. */
	if (ret == -EEXIST && flowfd__watches_find(w, entry->fd) < 0)
		ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_MOD, entry->fd,
					    entry->events, tag);
	if (ret)
		flowfd__watches_return_item(w, (uint32_t)number);
	else
		flowfd__watches_add(w, (uint32_t)number, entry->fd);
	return ret;
}

static int change_file(const struct flowfd_ring *ring,
		       const struct flowfd_ring_entry *entry)
{
	int ret, number = flowfd__watches_find(ring->watches, entry->fd);
	struct flowfd__owner *owner;

	if (number < 0) {
		ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_MOD, entry->fd, 0, TAG_NOBODY);
		return ret ? ret : -ENOENT;
	}
	owner = &ring->watches->owners[number];
	owner->generation++;
	ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_MOD, entry->fd, entry->events,
				    flowfd__watches_tag(ring->watches, (uint32_t)number));
	if (ret)
		owner->generation--;
	else
		set_item(ring, (uint32_t)number, entry->data);
	return ret;
}

static int remove_file(const struct flowfd_ring *ring, int fd)
{
	int ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, fd, 0, 0);
	int number = flowfd__watches_find(ring->watches, fd);

	if (ret || number < 0)
		return ret ? ret : -ENOENT;
	remove_item(ring, (uint32_t)number);
	return 0;
}

static int add_post(const struct flowfd_ring *ring, uint64_t data)
{
	int number = take_item(ring);

	if (number < 0)
		return number;
	set_item(ring, (uint32_t)number, data);
	flowfd__watches_add(ring->watches, (uint32_t)number, -1);
	return number;
}

static int remove_post(const struct flowfd_ring *ring, uint32_t number)
{
	const struct flowfd_watches *w = ring->watches;

	if (number >= w->used || w->owners[number].kind != FLOWFD__POST)
		return -ENOENT;
	remove_item(ring, number);
	return 0;
}

/*
 * A file whose number is another's, or nobody's, stays in epoll until it is closed. Its
 * events are not delivered.
 */
static int remove_by_data(const struct flowfd_ring *ring, uint64_t data)
{
	struct flowfd_watches *w = ring->watches;
	int removed = 0;
	uint32_t i;

	for (i = 0; i < w->used; i++) {
		if (w->owners[i].kind == FLOWFD__FREE || ring->items[i].data != data)
			continue;
		if (w->owners[i].kind == FLOWFD__FILE)
			flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, w->owners[i].fd, 0, 0);
		remove_item(ring, i);
		removed++;
	}
	return removed ? removed : -ENOENT;
}

static bool entry_is_valid(const struct flowfd_ring_entry *entry)
{
	switch (entry->op) {
	case FLOWFD_RING_DEL:
	case FLOWFD_RING_DEL_POST:
		return !entry->events && !entry->data;
	case FLOWFD_RING_DEL_DATA:
	case FLOWFD_RING_ADD_POST:
		return !entry->events && entry->fd == -1;
	case FLOWFD_RING_ADD:
	case FLOWFD_RING_ADD_PINNED:
	case FLOWFD_RING_MOD:
		return entry->events & EPOLLET &&
		       !(entry->events & ~(WATCH_EVENTS | EPOLLET | EPOLLONESHOT));
	default:
		return false;
	}
}

static int control_one(const struct flowfd_ring *ring,
		       const struct flowfd_ring_entry *entry)
{
	if (!entry_is_valid(entry))
		return -EINVAL;
	switch (entry->op) {
	case FLOWFD_RING_DEL:
		return remove_file(ring, entry->fd);
	case FLOWFD_RING_DEL_POST:
		return remove_post(ring, (uint32_t)entry->fd);
	case FLOWFD_RING_DEL_DATA:
		return remove_by_data(ring, entry->data);
	case FLOWFD_RING_ADD_POST:
		return add_post(ring, entry->data);
	case FLOWFD_RING_MOD:
		return change_file(ring, entry);
	default:
		return add_file(ring, entry);
	}
}

int flowfd__ring_epoll_control(const struct flowfd_ring *ring,
			       struct flowfd_ring_entry *entries, uint32_t count)
{
	int failed = 0;
	uint32_t i;

	if (!ring->watches->alive)
		return -ECHILD;
	if (count > FLOWFD_RING_ITEMS_MAX)
		return -EINVAL;
	if (count && !entries)
		return -EFAULT;
	pthread_mutex_lock(&ring->watches->lock);
	for (i = 0; i < count; i++) {
		entries[i].result = control_one(ring, &entries[i]);
		failed += entries[i].result < 0;
	}
	pthread_mutex_unlock(&ring->watches->lock);
	return failed;
}

/* ---- Posts that wake. ---- */

static int ring_doorbell(int fd)
{
	const uint64_t one = 1;
	int saved = errno, ret = 0;

	if (syscall(SYS_write, fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		ret = -errno;
	errno = saved;
	return ret;
}

/* As the module's flowfd_ring_has_posts(). */
static bool has_posts(const struct flowfd_ring *ring)
{
	const struct flowfd_ring_header *header = ring->header;

	return __atomic_load_n(&header->posted, __ATOMIC_SEQ_CST) & FLOWFD_RING_POSTED_ITEM ||
	       __atomic_load_n(&header->taken, __ATOMIC_RELAXED);
}

static void exchange_armed(const struct flowfd_ring *ring, uint32_t from, uint32_t to)
{
	__atomic_compare_exchange_n(&ring->header->armed, &from, to, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

/* Announces it, rings, and then announces that: a process can be killed in between. */
int flowfd__ring_epoll_notify(const struct flowfd_ring *ring)
{
	int ret;

	if (!has_posts(ring))
		return 0;
	exchange_armed(ring, ARMED, RINGING);
	ret = ring_doorbell(ring->doorbell);
	if (!ret)
		exchange_armed(ring, RINGING, RUNG);
	return ret;
}

/* The next post rings: also if the doorbell is readable, for an edge. */
static void arm(const struct flowfd_ring *ring)
{
	__atomic_exchange_n(&ring->header->armed, ARMED, __ATOMIC_SEQ_CST);
}

/* Drains the doorbell, which is to be readable as long as there are posts. */
static void drain_doorbell(const struct flowfd_ring *ring)
{
	int saved = errno;
	uint64_t value;

	if (has_posts(ring))
		return;
	if (syscall(SYS_read, ring->doorbell, &value, sizeof(value)) < 0)
		errno = saved;
	arm(ring);
	if (has_posts(ring))
		ring_doorbell(ring->doorbell);
}

/* ---- Waiting. ---- */

/* As flowfd_publish() of the module: P1 to P4. */
static void publish(const struct flowfd_ring *ring, uint32_t number, uint32_t bits)
{
	struct flowfd_ring_item *item = &ring->items[number];
	uint32_t position;

	__atomic_fetch_or(&item->ready, bits, __ATOMIC_SEQ_CST);
	if (__atomic_fetch_or(&item->queued, FLOWFD_RING_IN_INDEX, __ATOMIC_SEQ_CST))
		return;
	position = ring->watches->tail++;
	__atomic_store_n(&ring->index[position & ring->mask], number + 1, __ATOMIC_RELEASE);
}

/* Files that were changed or removed since then have another tag. */
static void move_events(const struct flowfd_ring *ring, const struct epoll_event *events,
			int count)
{
	bool rung = false;
	int i, number;

	pthread_mutex_lock(&ring->watches->lock);
	for (i = 0; i < count; i++) {
		number = flowfd__watches_number(ring->watches, events[i].data.u64);
		if (number >= 0)
			publish(ring, (uint32_t)number, events[i].events);
		rung |= events[i].data.u64 == TAG_DOORBELL;
	}
	pthread_mutex_unlock(&ring->watches->lock);
	if (rung)
		drain_doorbell(ring);
}

/* Moves all that epoll has; waits for the first. Returns 0 or a negative errno. */
static int fetch(const struct flowfd_ring *ring, struct flowfd__epoll_sleep sleep)
{
	/* Each file once, however fast it announces more. */
	uint32_t left = ring->max_items / BATCH + 1;
	struct epoll_event events[BATCH];
	int count, moved = 0;

	do {
		count = flowfd__epoll_wait(ring->fd, events, BATCH, &sleep);
		if (count < 0)
			return moved ? 0 : count;
		move_events(ring, events, count);
		moved += count;
		sleep.timeout = 0;
		sleep.cancellable = false;
	} while (count == BATCH && left--);
	return 0;
}

static bool has_enough(const struct flowfd_ring *ring, uint32_t wanted, int *result)
{
	uint32_t pending = ring->watches->tail -
			   __atomic_load_n(&ring->header->head, __ATOMIC_RELAXED);

	*result = (int)pending;
	if (pending >= wanted)
		return true;
	if (!has_posts(ring))
		return false;
	*result = pending ? (int)pending : 1;
	return true;
}

static int check_args(const struct flowfd_ring *ring, const struct flowfd_ring_wait *args)
{
	if (args->flags || args->reserved || args->min_events > ring->mask + 1)
		return -EINVAL;
	if (args->sigmask_size != (args->sigmask ? sizeof(uint64_t) : 0))
		return -EINVAL;
	return 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

/* How long to sleep for what is wanted; 0: not at all, or not any more. */
static uint64_t time_left(const struct flowfd_ring_wait *args, uint64_t passed,
			  uint32_t wanted)
{
	uint64_t limit = args->timeout;

	if (wanted > 1 && args->min_wait && args->min_wait < limit)
		limit = args->min_wait;
	if (limit == FLOWFD_RING_FOREVER)
		return limit;
	return limit > passed ? limit - passed : 0;
}

int flowfd__ring_epoll_wait(const struct flowfd_ring *ring,
			    const struct flowfd_ring_wait *args, int cancellable)
{
	struct flowfd__epoll_sleep sleep = { .sigmask = args->sigmask,
					     .cancellable = cancellable };
	uint32_t wanted = args->min_events ? args->min_events : 1;
	uint64_t start, passed = 0;
	int ret, result;
	bool enough;

	if (!ring->watches->alive)
		return -ECHILD;
	ret = check_args(ring, args);
	if (ret)
		return ret;
	start = args->timeout == FLOWFD_RING_FOREVER && !args->min_wait ? 0 : now();
	for (;;) {
		arm(ring);
		/* If there is enough, epoll is looked at, but not slept in. */
		enough = has_enough(ring, wanted, &result);
		sleep.timeout = enough ? 0 : time_left(args, passed, wanted);
		ret = fetch(ring, sleep);
		enough |= has_enough(ring, wanted, &result);
		/* Events come before a signal. */
		if (ret < 0 && !(ret == -EINTR && enough))
			return ret;
		if (enough)
			return result;
		passed = start ? now() - start : 0;
		if (args->timeout != FLOWFD_RING_FOREVER && passed >= args->timeout)
			return result;
		if (args->min_wait && passed >= args->min_wait)
			wanted = 1;
	}
}
