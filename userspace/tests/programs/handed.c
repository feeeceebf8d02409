// SPDX-License-Identifier: GPL-2.0-only
/*
 * The descriptors that the shim finds in arguments of calls. For devices that no test
 * machine has: this program replaces replace_counter().
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kvm.h>
#include <linux/vfio.h>
#include <linux/vhost.h>

#include "preload/handover.h"
#include "preload/replace.h"
#include "tests/tap.h"

static int found[8];
static int count;

static int unread;

/* 7 is a counter, 9 a counter that stays; there are no others. */
enum replaced replace_counter(int fd, const char *taker)
{
	(void)taker;
	if (count < 8)
		found[count] = fd;
	count++;
	if (fd == 9)
		return REPLACED_STAYS;
	return fd == 7 ? REPLACED_REAL : REPLACED_NONE;
}

void replace_unread(const char *taker)
{
	(void)taker;
	unread++;
}

static bool handed(unsigned long request, const void *argument)
{
	count = 0;
	return handover_ioctl(request, argument);
}

static void test_vfio(void)
{
	const int fds[] = {5, -1, 7};
	const int stays[] = {7, 9, 9};
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
	tap_is(unread, 0, "all was read");
	tap_ok(!handed(VFIO_DEVICE_SET_IRQS, (void *)-4096L), "a bad pointer");
	tap_is(unread, 1, "is reported");
	set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	memcpy(set->data, stays, sizeof(stays));
	tap_ok(!handed(VFIO_DEVICE_SET_IRQS, set), "one that stays");
	tap_is(count, 2, "is the last that is looked at");
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
	irqfd.fd = 9;
	tap_ok(!handed(KVM_IRQFD, &irqfd), "the first of two stays");
	tap_is(count, 1, "so the second is left alone");
	irqfd.fd = 7;
	irqfd.resamplefd = 9;
	tap_ok(!handed(KVM_IRQFD, &irqfd), "the second of two stays");
	tap_ok(handed(VHOST_VDPA_SET_CONFIG_CALL, &fd), "vDPA");
	tap_ok(handover_is_ioctl((long)(int)VHOST_VDPA_SET_CONFIG_CALL) &&
		       handover_is_ioctl((long)(int)VHOST_SET_LOG_FD),
	       "requests that were an int");
	tap_ok(!handover_is_ioctl(KVM_CREATE_VM), "another request");
}

static pthread_t main_thread;

static void *hand_later(void *argument)
{
	int fd = 7;

	(void)argument;
	pthread_join(main_thread, NULL);
	_exit(handed(VHOST_SET_LOG_FD, &fd) ? 0 : 1);
}

/* The main thread ends before the call. */
static void test_thread(void)
{
	pthread_t thread;
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		main_thread = pthread_self();
		if (pthread_create(&thread, NULL, hand_later, NULL))
			_exit(2);
		pthread_exit(NULL);
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "a thread that is left alone");
}

int main(void)
{
	test_thread();
	test_vfio();
	test_others();
	return tap_done();
}
