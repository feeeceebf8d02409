// SPDX-License-Identifier: MIT
/*
 * Knows where descriptors are in the arguments of KVM, vhost, VFIO, AIO and io_uring.
 * It reads the arguments by a system call, as the kernel may have refused them because
 * of a bad pointer.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/kvm.h>
#include <linux/vfio.h>
#include <linux/vhost.h>

#include "preload/handover.h"
#include "preload/next.h"
#include "preload/replace.h"

/* More than the interrupts of an MSI-X device. */
#define VECTORS_MAX 4096

/* By the thread's own ID: the main thread can have ended and then has no memory. */
static bool peek(void *to, const void *from, size_t size, const char *taker)
{
	const struct iovec local = { .iov_base = to, .iov_len = size };
	const struct iovec remote = { .iov_base = (void *)from, .iov_len = size };
	const long arguments[6] = {
		next_call(SYS_gettid, 0, 0, 0, 0), (long)&local, 1, (long)&remote, 1,
	};
	int saved = errno;
	long ret = next_syscall(SYS_process_vm_readv, arguments);

	errno = saved;
	if (ret == (long)size)
		return true;
	replace_unread(taker);
	return false;
}

static const char *ioctl_name(unsigned long request)
{
	/* Some programs pass a sign-extended int. */
	switch ((unsigned int)request) {
	case KVM_IRQFD:
		return "KVM_IRQFD";
	case KVM_IOEVENTFD:
		return "KVM_IOEVENTFD";
	case VHOST_SET_VRING_KICK:
		return "VHOST_SET_VRING_KICK";
	case VHOST_SET_VRING_CALL:
		return "VHOST_SET_VRING_CALL";
	case VHOST_SET_VRING_ERR:
		return "VHOST_SET_VRING_ERR";
	case VHOST_SET_LOG_FD:
		return "VHOST_SET_LOG_FD";
	case VHOST_VDPA_SET_CONFIG_CALL:
		return "VHOST_VDPA_SET_CONFIG_CALL";
	case VFIO_DEVICE_SET_IRQS:
		return "VFIO_DEVICE_SET_IRQS";
	case VFIO_DEVICE_IOEVENTFD:
		return "VFIO_DEVICE_IOEVENTFD";
	default:
		return NULL;
	}
}

bool handover_is_ioctl(unsigned long request)
{
	return ioctl_name(request) != NULL;
}

static enum replaced replace_each(const void *address, const char *taker)
{
	int fd;

	if (!peek(&fd, address, sizeof(fd), taker))
		return REPLACED_NONE;
	return replace_counter(fd, taker);
}

static bool replace_at(const void *address, const char *taker)
{
	return replace_each(address, taker) == REPLACED_REAL;
}

/* If one counter stays, the kernel refuses the call again. */
static bool replace_irqfd(const struct kvm_irqfd *argument, const char *taker)
{
	enum replaced first, second = REPLACED_NONE;
	struct kvm_irqfd irqfd;

	if (!peek(&irqfd, argument, sizeof(irqfd), taker))
		return false;
	first = replace_counter(irqfd.fd, taker);
	if (first == REPLACED_STAYS)
		return false;
	if (irqfd.flags & KVM_IRQFD_FLAG_RESAMPLE)
		second = replace_counter(irqfd.resamplefd, taker);
	return second != REPLACED_STAYS &&
	       (first == REPLACED_REAL || second == REPLACED_REAL);
}

/* Stops at the first that stays: waiting for thousands would take seconds. */
static bool replace_vectors(const struct vfio_irq_set *argument, const char *taker)
{
	struct vfio_irq_set set;
	bool replaced = false;

	if (!peek(&set, argument, sizeof(set), taker) ||
	    !(set.flags & VFIO_IRQ_SET_DATA_EVENTFD))
		return false;
	for (uint32_t i = 0; i < set.count && i < VECTORS_MAX; i++) {
		const void *address = argument->data + i * sizeof(int32_t);
		enum replaced each = replace_each(address, taker);

		if (each == REPLACED_STAYS)
			return false;
		replaced |= each == REPLACED_REAL;
	}
	return replaced;
}

bool handover_ioctl(unsigned long request, const void *argument)
{
	const char *taker = ioctl_name(request);
	const char *bytes = argument;

	switch ((unsigned int)request) {
	case KVM_IRQFD:
		return replace_irqfd(argument, taker);
	case KVM_IOEVENTFD:
		return replace_at(bytes + offsetof(struct kvm_ioeventfd, fd), taker);
	case VFIO_DEVICE_SET_IRQS:
		return replace_vectors(argument, taker);
	case VFIO_DEVICE_IOEVENTFD:
		return replace_at(bytes + offsetof(struct vfio_device_ioeventfd, fd),
				  taker);
	case VHOST_SET_LOG_FD:
	case VHOST_VDPA_SET_CONFIG_CALL:
		return replace_at(bytes, taker);
	default:
		return replace_at(bytes + offsetof(struct vhost_vring_file, fd), taker);
	}
}

bool handover_iocb(struct iocb *const *iocb)
{
	const struct iocb *address;
	struct iocb own;

	return peek(&address, iocb, sizeof(address), "io_submit") &&
	       peek(&own, address, sizeof(own), "io_submit") &&
	       own.aio_flags & IOCB_FLAG_RESFD &&
	       replace_counter(own.aio_resfd, "io_submit") == REPLACED_REAL;
}

bool handover_uring(unsigned int opcode, const void *argument)
{
	/* The highest bit says whether the ring is given by a registered index. */
	switch (opcode & ~(1U << 31)) {
	case IORING_REGISTER_EVENTFD:
	case IORING_REGISTER_EVENTFD_ASYNC:
		return replace_at(argument, "io_uring_register");
	default:
		return false;
	}
}
