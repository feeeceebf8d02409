// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives an eventfd to each interface of the kernel that signals eventfds and that a virtual
 * machine has. Prints a line for each: its name, and "taken" or the error.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/kvm.h>
#include <linux/vhost.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int made(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0) {
		perror("eventfd");
		exit(EXIT_FAILURE);
	}
	return fd;
}

static void result(const char *name, long ret)
{
	printf("%s: %s\n", name, ret < 0 ? strerrorname_np(errno) : "taken");
}

static void give_aio(const char *file)
{
	static char byte;
	struct iocb iocb = {
		.aio_fildes = open(file, O_RDONLY | O_CLOEXEC),
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_buf = (uintptr_t)&byte,
		.aio_nbytes = 1,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = made(),
	};
	struct iocb *list[] = { &iocb };
	aio_context_t aio = 0;

	if (syscall(SYS_io_setup, 1, &aio)) {
		perror("io_setup");
		exit(EXIT_FAILURE);
	}
	result("AIO", syscall(SYS_io_submit, aio, 1, list));
}

static void give_uring(void)
{
	struct io_uring_params params = { 0 };
	int ring = syscall(SYS_io_uring_setup, 1, &params);
	int fd = made();

	if (ring < 0) {
		perror("io_uring_setup");
		exit(EXIT_FAILURE);
	}
	result("io_uring", syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD,
				   &fd, 1));
}

static void give_kvm(void)
{
	struct kvm_ioeventfd io = { .addr = 0x1000, .len = 4, .fd = made() };
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm >= 0)
		result("KVM", ioctl(ioctl(kvm, KVM_CREATE_VM, 0), KVM_IOEVENTFD, &io));
}

static void give_vhost(void)
{
	struct vhost_vring_file call = { .index = 0, .fd = made() };
	int vhost = open("/dev/vhost-vsock", O_RDWR | O_CLOEXEC);

	if (vhost >= 0 && !ioctl(vhost, VHOST_SET_OWNER))
		result("vhost", ioctl(vhost, VHOST_SET_VRING_CALL, &call));
}

int main(int argc, char **argv)
{
	(void)argc;
	give_aio(argv[0]);
	give_uring();
	give_kvm();
	give_vhost();
	return EXIT_SUCCESS;
}
