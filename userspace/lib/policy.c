// SPDX-License-Identifier: MIT
/* The settings of a counter with or without the module. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "doorbell.h"
#include "mapped.h"
#include "memory.h"
#include "settings.h"
#include "words.h"

#define SETTINGS                                                             \
	(FLOWFD_SET_MAXIMUM | FLOWFD_SET_READ_MARK | FLOWFD_SET_WRITE_MARK | \
	 FLOWFD_SET_MAX_DELAY | FLOWFD_SET_QOS | FLOWFD_SET_OVERFLOW)

/* Whether the library has to do it (1), the module (0), or nobody. */
static int whose(const struct flowfd_counter *c)
{
	if (c->doorbell)
		return c->roles ? 1 : -ENODEV;
	return flowfd__is_eventfd(c) ? -EOPNOTSUPP : 0;
}

/* What only the module can do; as there, @set names what counts. */
static int check_needs(const struct flowfd_flow *flow, uint32_t set)
{
	if (flow->flags & FLOWFD_SEAL ||
	    (set & FLOWFD_SET_READ_MARK && flow->read_mark > 1) ||
	    (set & FLOWFD_SET_WRITE_MARK && flow->write_mark > 1) ||
	    (set & FLOWFD_SET_MAX_DELAY && flow->max_delay) ||
	    (set & FLOWFD_SET_QOS && flow->qos.token_rate))
		return -EOPNOTSUPP;
	return 0;
}

static int check(const struct flowfd_counter *c, const struct flowfd_flow *flow,
		 uint32_t set)
{
	const uint32_t flags = FLOWFD_SEMAPHORE | FLOWFD_MAPPED | FLOWFD_SEAL;

	if (flow->set & ~SETTINGS || flow->flags & ~flags || flow->reserved ||
	    (set & FLOWFD_SET_OVERFLOW && flow->overflow > FLOWFD_OVERFLOW_DROP) ||
	    (set & FLOWFD_SET_MAXIMUM && flow->maximum &&
	     flow->maximum <= flowfd__count(c)))
		return -EINVAL;
	return check_needs(flow, set);
}

/* Returns 0 or a negative errno. */
static int store(const struct flowfd_counter *c, const struct flowfd_flow *flow,
		 uint32_t set)
{
	size_t page = c->map_size / FLOWFD__PAGES;
	struct flowfd__settings_page *settings;
	void *map;
	int ret = flowfd__map(&map, page, PROT_READ | PROT_WRITE, c->memory, 0);

	if (ret)
		return ret;
	settings = map;
	if (set & FLOWFD_SET_OVERFLOW)
		__atomic_store_n(&settings->overflow, flow->overflow, __ATOMIC_SEQ_CST);
	if (set & FLOWFD_SET_MAXIMUM)
		__atomic_store_n(&settings->header.maximum,
				 flow->maximum ? flow->maximum : UINT64_MAX,
				 __ATOMIC_SEQ_CST);
	flowfd__unmap(map, page);
	return 0;
}

int flowfd_counter_set_flow(const struct flowfd_counter *c,
			    const struct flowfd_flow *flow, size_t size)
{
	struct flowfd_flow copy = { 0 };
	uint32_t set;
	int ret = whose(c);

	if (!ret)
		return flowfd_set_flow(c->fd, flow, size);
	if (ret > 0)
		ret = flowfd__copy(&copy, sizeof(copy), flow, size,
				   FLOWFD_FLOW_SIZE_VER0);
	if (ret)
		return ret;
	set = copy.set ? copy.set : SETTINGS;
	ret = check(c, &copy, set);
	if (!ret)
		ret = store(c, &copy, set);
	if (!ret)
		flowfd__doorbell_changed(c);
	return ret;
}

int flowfd_counter_get_flow(const struct flowfd_counter *c, struct flowfd_flow *flow,
			    size_t size)
{
	const struct flowfd__settings_page *settings = flowfd__settings_page(c);
	int ret = whose(c);

	if (!ret)
		return flowfd_get_flow(c->fd, flow, size);
	if (ret < 0)
		return ret;
	if (size < FLOWFD_FLOW_SIZE_VER0 || size > _IOC_SIZEMASK)
		return -EINVAL;
	memset(flow, 0, size);
	flow->maximum = __atomic_load_n(&settings->header.maximum, __ATOMIC_RELAXED);
	flow->read_mark = 1;
	flow->write_mark = 1;
	flow->overflow = __atomic_load_n(&settings->overflow, __ATOMIC_RELAXED);
	flow->flags = settings->header.flags;
	flow->count = flowfd__count(c);
	flow->lost = __atomic_load_n(&flowfd__producer_page(c)->lost, __ATOMIC_RELAXED);
	return 0;
}
