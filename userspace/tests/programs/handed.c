// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which descriptors the shim finds in what the kernel is given. For the devices
 * that no test machine has: this program is in the place of replace_counter().
 */
#include <stdlib.h>
#include <string.h>

#include <linux/kvm.h>
#include <linux/vfio.h>
#include <linux/vhost.h>

#include "preload/handover.h"
#include "preload/replace.h"
#include "tests/tap.h"

static int found[8];
static int count;

/* 7 is a counter, nothing else is. */
bool replace_counter(int fd, const char *taker)
{
	(void)taker;
	if (count < 8)
		found[count] = fd;
	count++;
	return fd == 7;
}

static bool handed(unsigned long request, const void *argument)
{
	count = 0;
	return handover_ioctl(request, argument);
}

static void test_vfio(void)
{
	const int fds[] = {5, -1, 7};
	struct vfio_irq_set *set = malloc(sizeof(*set) + sizeof(fds));
	struct vfio_device_ioeventfd io = {.fd = 7};

	memset(set, 0, sizeof(*set));
	set->count = 3;
	set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	memcpy(set->data, fds, sizeof(fds));
	tap_ok(handed(VFIO_DEVICE_SET_IRQS, set), "VFIO_DEVICE_SET_IRQS");
	tap_is(count, 3, "all vectors");
	tap_ok(!memcmp(found, fds, sizeof(fds)), "in their order");
	set->flags = VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER;
	tap_ok(!handed(VFIO_DEVICE_SET_IRQS, set) && !count, "other data");
	tap_ok(!handed(VFIO_DEVICE_SET_IRQS, (void *)-4096L), "a bad pointer");
	free(set);
	tap_ok(handed(VFIO_DEVICE_IOEVENTFD, &io), "VFIO_DEVICE_IOEVENTFD");
}

static void test_others(void)
{
	struct kvm_irqfd irqfd = {.fd = 3, .resamplefd = 7};
	int fd = 7;

	tap_ok(!handed(KVM_IRQFD, &irqfd), "no resampling, no second eventfd");
	tap_is(count, 1, "one descriptor");
	irqfd.flags = KVM_IRQFD_FLAG_RESAMPLE;
	tap_ok(handed(KVM_IRQFD, &irqfd), "a second eventfd for resampling");
	tap_is(count, 2, "two descriptors");
	tap_ok(handed(VHOST_VDPA_SET_CONFIG_CALL, &fd), "vDPA");
	tap_ok(handover_is_ioctl((long)(int)VHOST_VDPA_SET_CONFIG_CALL) &&
		       handover_is_ioctl((long)(int)VHOST_SET_LOG_FD),
	       "requests that were an int");
	tap_ok(!handover_is_ioctl(KVM_CREATE_VM), "another request");
}

int main(void)
{
	test_vfio();
	test_others();
	return tap_done();
}
