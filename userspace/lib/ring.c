// SPDX-License-Identifier: MIT
/*
 * The ring: creating and mapping it, what it watches, and waiting. Thin calls into the
 * kernel, or what does without it; flowfd-ring.h documents each, and has the harvest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"
#include "bell.h"
#include "device.h"
#include "memory.h"
#include "ring_epoll.h"

#define FEATURES (FLOWFD_HAS_EVENTS | FLOWFD_HAS_CLOSES | FLOWFD_HAS_SHARING)

/*
 * @layout is what the file answers, for every process that has the ring can write its
 * header. Who sends a ring is trusted, so the file is not asked what it is.
 */
static int ring_map(struct flowfd_ring *ring, int fd,
		    const struct flowfd_create_ring *layout)
{
	struct flowfd_ring_header *header;
	void *map = NULL;
	int ret;

	ret = flowfd__map(&map, layout->map_size, PROT_READ | PROT_WRITE, fd, 0);
	if (ret)
		return ret;
	header = map;
	/*
	 * The harvest is compiled into programs and knows this layout alone. A module
	 * without posts has items where it looks for them.
	 */
	if (header->magic != FLOWFD_RING_MAGIC ||
	    header->version != FLOWFD_RING_VERSION ||
	    layout->items_offset < sizeof(*header)) {
		flowfd__unmap(map, layout->map_size);
		return -EPROTONOSUPPORT;
	}
	*ring = (struct flowfd_ring){
		.fd = fd,
		.mask = layout->index_slots - 1,
		.max_items = layout->max_items,
		.head = header->head,
		.header = header,
		.items = (void *)((char *)header + layout->items_offset),
		.index = (void *)((char *)header + layout->index_offset),
		.map_size = layout->map_size,
		.features = FEATURES,
	};
	return 0;
}

/*
 * The device gets the lowest free descriptor, and the ring, created through it, then
 * replaces it there. Until then both are close-on-exec, so that neither leaks into a
 * program that another thread executes.
 */
static int create_in_place(int device, struct flowfd_create_ring *args)
{
	int keep = args->flags & FLOWFD_KEEP_ON_EXEC;
	int fd;

	args->flags &= ~FLOWFD_KEEP_ON_EXEC;
	fd = flowfd__ioctl(device, FLOWFD_IOC_CREATE_RING, args);
	if (fd < 0)
		return fd == -ENOTTY ? -EPROTONOSUPPORT : fd;
	return flowfd__take_place(fd, device, keep);
}

static int create_with_module(struct flowfd_ring *ring, uint32_t max_items,
			      unsigned int flags)
{
	struct flowfd_create_ring args = {
		.max_items = max_items,
		.flags = flags,
	};
	int fd, ret;

	fd = flowfd__open(O_CLOEXEC);
	if (fd < 0)
		return fd;
	ret = flowfd__check(fd);
	if (!ret)
		ret = create_in_place(fd, &args);
	if (ret >= 0)
		ret = ring_map(ring, fd, &args);
	if (ret < 0)
		flowfd__close(fd);
	return ret;
}

/* The library's own; among the module's flags its value is one that no ring has. */
_Static_assert(FLOWFD_FALLBACK == FLOWFD_SEMAPHORE,
	       "FLOWFD_FALLBACK is no flag of rings");

int flowfd_ring_create(struct flowfd_ring *ring, uint32_t max_items, unsigned int flags)
{
	int backend = flowfd__backend(flags & FLOWFD_FALLBACK);
	int ret = backend;

	if (backend < 0)
		return backend;
	flags &= ~FLOWFD_FALLBACK;
	if (backend != FLOWFD__FALLBACK)
		ret = create_with_module(ring, max_items, flags);
	if (flowfd__falls_back(backend, ret))
		ret = flowfd__ring_epoll_create(ring, max_items, flags);
	return ret;
}

int flowfd_ring_attach(struct flowfd_ring *ring, int fd)
{
	struct flowfd_create_ring layout;
	int ret = flowfd__request(fd, FLOWFD_IOC_RING_INFO, &layout);

	/* The answer of an epoll, since Linux 6.9. */
	if (ret == -EINVAL)
		return -ENOTTY;
	return ret ? ret : ring_map(ring, fd, &layout);
}

void flowfd_ring_destroy(struct flowfd_ring *ring)
{
	if (ring->watches)
		flowfd__ring_epoll_destroy(ring);
	flowfd__unmap(ring->header, ring->map_size);
	flowfd__close(ring->fd);
}

int flowfd_ring_control(const struct flowfd_ring *ring, struct flowfd_ring_entry *entries,
			uint32_t count)
{
	struct flowfd_ring_control args = {
		.entries = (uintptr_t)entries,
		.count = count,
	};

	if (ring->watches)
		return flowfd__ring_epoll_control(ring, entries, count);
	return flowfd__ioctl(ring->fd, FLOWFD_IOC_RING_CONTROL, &args);
}

/* Returns 0 or -errno; flowfd_ring_control() gives callers the full result. */
static int control_one(const struct flowfd_ring *ring, struct flowfd_ring_entry *entry)
{
	int ret = flowfd_ring_control(ring, entry, 1);

	if (ret < 0)
		return ret;
	return entry->result < 0 ? entry->result : 0;
}

int flowfd_ring_add(const struct flowfd_ring *ring, int fd, uint32_t events,
		    uint64_t data)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_ADD,
		.fd = fd,
		.events = events,
		.data = data,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_add_pinned(const struct flowfd_ring *ring, int fd, uint32_t events,
			   uint64_t data)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_ADD_PINNED,
		.fd = fd,
		.events = events,
		.data = data,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_mod(const struct flowfd_ring *ring, int fd, uint32_t events,
		    uint64_t data)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_MOD,
		.fd = fd,
		.events = events,
		.data = data,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_del(const struct flowfd_ring *ring, int fd)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_DEL,
		.fd = fd,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_del_data(const struct flowfd_ring *ring, uint64_t data)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_DEL_DATA,
		.fd = -1,
		.data = data,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_add_post(const struct flowfd_ring *ring, uint64_t data)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_ADD_POST,
		.fd = -1,
		.data = data,
	};
	int ret = flowfd_ring_control(ring, &entry, 1);

	return ret < 0 ? ret : entry.result;
}

int flowfd_ring_del_post(const struct flowfd_ring *ring, uint32_t item)
{
	struct flowfd_ring_entry entry = {
		.op = FLOWFD_RING_DEL_POST,
		.fd = (int)item,
	};

	return control_one(ring, &entry);
}

int flowfd_ring_notify(const struct flowfd_ring *ring)
{
	if (ring->watches)
		return flowfd__bell_notify(ring);
	return flowfd__request(ring->fd, FLOWFD_IOC_RING_NOTIFY, NULL);
}

/*
 * Looks for an item, by number plus one, in the list that begins with @first. Returns
 * whether it is there, and in @last the end of the list.
 */
static bool find_post(const struct flowfd_ring *ring, uint32_t first, uint32_t number,
		      struct flowfd_ring_item **last)
{
	uint32_t left = ring->max_items;
	bool found = false;

	*last = NULL;
	for (; first - 1 < ring->max_items && left; left--) {
		*last = &ring->items[first - 1];
		found |= first == number;
		first = __atomic_load_n(&(*last)->queued, __ATOMIC_RELAXED) >> 2 &
			FLOWFD_RING_POSTED_ITEM;
	}
	return found;
}

/*
 * Begins another epoch as it takes the stack: no push that is under way now succeeds, and
 * its poster then looks whether its mark is still there. So a mark of an earlier epoch,
 * on an item that was not in the stack, can be removed without harm to a poster that
 * lives. When the item has been pushed again, each mark of it has a later epoch, also in
 * the list that the consumer has taken.
 */
int flowfd_ring_revive_post(struct flowfd_ring *ring, uint32_t item)
{
	struct flowfd_ring_header *header = ring->header;
	struct flowfd_ring_item *last, *end, *silent;
	uint32_t epoch, added, mark;
	bool found;

	if (item >= ring->max_items)
		return -EINVAL;
	flowfd_ring_claim(ring);
	epoch = flowfd_ring_epoch(ring) + FLOWFD_RING_POSTED_ITEM + 1;
	epoch &= FLOWFD_RING_POSTED_EPOCH;
	added = flowfd_ring_reverse_posts(ring, flowfd_ring_take_stack(ring, epoch));
	found = find_post(ring, header->taken, item + 1, &last);
	found |= find_post(ring, added, item + 1, &end);
	if (last)
		__atomic_store_n(&last->queued,
				 (epoch | added) << 2 | FLOWFD_RING_IN_STACK,
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n(&header->taken, added, __ATOMIC_RELAXED);
	flowfd_ring_disclaim(ring);
	if (found)
		return 0;
	silent = &ring->items[item];
	mark = __atomic_load_n(&silent->queued, __ATOMIC_RELAXED);
	if (!(mark & FLOWFD_RING_BY_POST) ||
	    (mark >> 2 & FLOWFD_RING_POSTED_EPOCH) == epoch)
		return 0;
	if (!__atomic_compare_exchange_n(&silent->queued, &mark, 0, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return 0;
	flowfd_ring_post(ring, item, __atomic_load_n(&silent->ready, __ATOMIC_SEQ_CST));
	return 1;
}

/* What the kernel does with a structure of another size. */
static int wait_without_module(const struct flowfd_ring *ring,
			       const struct flowfd_ring_wait *args, size_t size)
{
	const unsigned char *bytes = (const void *)args;
	size_t i;

	if (size < FLOWFD_RING_WAIT_SIZE_VER0)
		return -EINVAL;
	for (i = sizeof(*args); i < size; i++)
		if (bytes[i])
			return -EPROTONOSUPPORT;
	return flowfd__ring_epoll_wait(ring, args, false);
}

int flowfd_ring_wait_with(const struct flowfd_ring *ring,
			  const struct flowfd_ring_wait *args, size_t size)
{
	int ret;

	if (size > _IOC_SIZEMASK)
		return -EINVAL;
	if (ring->watches)
		return wait_without_module(ring, args, size);
	ret = flowfd__ioctl(ring->fd,
			    _IOC(_IOC_WRITE, 'J', _IOC_NR(FLOWFD_IOC_RING_WAIT), size),
			    (void *)args);
	return ret == -E2BIG ? -EPROTONOSUPPORT : ret;
}

/* ENOTTY is also what a module says that knows rings, but not this request. */
int flowfd_ring_stats(const struct flowfd_ring *ring, struct flowfd_ring_stats *stats,
		      size_t size)
{
	unsigned int cmd = FLOWFD_IOC_RING_STATS;
	struct flowfd_create_ring info;
	int ret;

	if (size < FLOWFD_RING_STATS_SIZE_VER0 || size > _IOC_SIZEMASK)
		return -EINVAL;
	if (ring->watches)
		return -EOPNOTSUPP;
	cmd = _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
	ret = flowfd__request(ring->fd, cmd, stats);
	if (ret == -ENOTTY && !flowfd__request(ring->fd, FLOWFD_IOC_RING_INFO, &info))
		return -EPROTONOSUPPORT;
	return ret;
}

/* Returns how many entries there are, waiting for the first one, or -errno. */
static int read_pending(int fd)
{
	int saved = errno, ret;
	uint64_t pending;

	ret = read(fd, &pending, sizeof(pending)) < 0 ? -errno : (int)pending;
	errno = saved;
	return ret;
}

int flowfd_ring_wait(const struct flowfd_ring *ring, uint64_t timeout)
{
	const struct flowfd_ring_wait args = { .timeout = timeout };
	int ret;

	if (ring->watches)
		return flowfd__ring_epoll_wait(ring, &args,
					       timeout == FLOWFD_RING_FOREVER);
	/* The cheaper system call, but it does not wait if O_NONBLOCK is set. */
	if (timeout == FLOWFD_RING_FOREVER) {
		ret = read_pending(ring->fd);
		if (ret != -EAGAIN)
			return ret;
	}
	return flowfd_ring_wait_with(ring, &args, sizeof(args));
}
