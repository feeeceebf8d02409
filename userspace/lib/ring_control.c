// SPDX-License-Identifier: MIT
/*
 * Adding, changing and removing the files and posts of a ring without the module, as the
 * module's watch_control.c does. All of it is under the lock of the watches.
 */
#include <errno.h>
#include <fcntl.h>

#include "epoll.h"
#include "ring_epoll.h"
#include "watches.h"

#define WATCH_EVENTS                                                         \
	(EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDNORM | \
	 EPOLLRDBAND | EPOLLWRNORM | EPOLLWRBAND | EPOLLMSG | EPOLLRDHUP)

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

	if (tag == FLOWFD__TAG_DOORBELL)
		sweep->found_doorbell = true;
	else if (number >= 0)
		sweep->watches->owners[number].is_open = true;
}

/*
 * epoll forgets a file by itself when it is closed, and tells nobody. Its list says which
 * files are left; the items of all others become free. Returns 0, or why there is no
 * list.
 */
static int remove_closed(const struct flowfd_ring *ring)
{
	struct flowfd_watches *w = ring->watches;
	struct sweep sweep = { .watches = w };
	struct flowfd__owner *owner;
	uint32_t i;
	int ret;

	for (i = 0; i < w->used; i++)
		w->owners[i].is_open = false;
	ret = flowfd__epoll_list(ring->fd, mark_open, &sweep);
	/* Without its own eventfd it is not the list, or not all of it. */
	if (ret || !sweep.found_doorbell)
		return ret;
	for (i = 0; i < w->used; i++) {
		owner = &w->owners[i];
		if (!owner->is_open &&
		    (owner->kind == FLOWFD__FILE || owner->kind == FLOWFD__RENAMED))
			remove_item(ring, i);
	}
	return 0;
}

/* There is no free item, unless files were closed. */
static int take_item_of_closed(const struct flowfd_ring *ring, uint32_t resting)
{
	switch (remove_closed(ring)) {
	case -EMFILE:
		return -EMFILE;
	case -ENFILE:
		return -ENFILE;
	case -ENOMEM:
		return -ENOMEM;
	default:
		return flowfd__watches_take_item(ring->watches, ring->items, resting);
	}
}

/* It was removed by its data when its number was not its own. */
static bool is_left_behind(const struct flowfd_ring *ring, int fd, int error)
{
	return error == -EEXIST && flowfd__watches_find(ring->watches, fd) < 0;
}

/*
 * If the ring is full, other errors come first, as with the module, and without the list
 * of all files.
 */
static int take_item_for(const struct flowfd_ring *ring, int fd)
{
	int ret = flowfd__watches_take_item(ring->watches, ring->items,
					    FLOWFD_RING_BY_POST);

	if (ret >= 0)
		return ret;
	ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, fd, EPOLLET,
				    FLOWFD__TAG_NOBODY);
	if (!ret)
		flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, fd, 0, 0);
	else if (!is_left_behind(ring, fd, ret))
		return ret;
	return take_item_of_closed(ring, FLOWFD_RING_BY_POST);
}

/*
 * An epoll says that it does not watch the doorbell, any other file that it is none. A
 * copy of the ring's descriptor has the doorbell, and keeps it as it is.
 */
static bool is_epoll(const struct flowfd_ring *ring, int fd)
{
	int ret = flowfd__epoll_control(fd, EPOLL_CTL_MOD, ring->doorbell, EPOLLIN,
					FLOWFD__TAG_DOORBELL);

	return !ret || ret == -ENOENT;
}

static int add_file(const struct flowfd_ring *ring, const struct flowfd_ring_entry *entry)
{
	struct flowfd_watches *w = ring->watches;
	int number, ret;
	uint64_t tag;

	if (entry->fd == ring->fd || entry->fd == ring->doorbell ||
	    is_epoll(ring, entry->fd))
		return -ELOOP;
	number = take_item_for(ring, entry->fd);
	if (number < 0)
		return number;
	set_item(ring, (uint32_t)number, entry->data);
	tag = flowfd__watches_tag(w, (uint32_t)number);
	ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_ADD, entry->fd, entry->events,
				    tag);
	if (is_left_behind(ring, entry->fd, ret))
		ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_MOD, entry->fd,
					    entry->events, tag);
	if (ret)
		flowfd__watches_return_item(w, (uint32_t)number);
	else
		flowfd__watches_add(w, (uint32_t)number, entry->fd);
	return ret;
}

/*
 * epoll may still have it, if it was removed by its data or its number was another's
 * meanwhile: there nothing is changed.
 */
static int not_watched(int fd)
{
	int saved = errno, ret = fcntl(fd, F_GETFD) < 0 ? -EBADF : -ENOENT;

	errno = saved;
	return ret;
}

static int change_file(const struct flowfd_ring *ring,
		       const struct flowfd_ring_entry *entry)
{
	int ret, number = flowfd__watches_find(ring->watches, entry->fd);
	struct flowfd__owner *owner;

	if (number < 0)
		return not_watched(entry->fd);
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
	int ret, number = flowfd__watches_find(ring->watches, fd);

	/* A program may still remove a file whose number the doorbell got. */
	if (fd == ring->doorbell)
		return -ENOENT;
	ret = flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, fd, 0, 0);
	if (ret || number < 0)
		return ret ? ret : -ENOENT;
	remove_item(ring, (uint32_t)number);
	return 0;
}

/* An item in the index would not be pushed, and would not end a wait for more entries. */
static int add_post(const struct flowfd_ring *ring, uint64_t data)
{
	int number = flowfd__watches_take_item(ring->watches, ring->items, UINT32_MAX);

	if (number < 0)
		number = take_item_of_closed(ring, UINT32_MAX);
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
			flowfd__epoll_control(ring->fd, EPOLL_CTL_DEL, w->owners[i].fd, 0,
					      0);
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
