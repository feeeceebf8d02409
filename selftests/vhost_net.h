/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The network backend of virtual machines, vhost-net, on a tap device in a network
 * namespace of the process's own. The program is the guest.
 */
#ifndef VHOST_NET_H
#define VHOST_NET_H

#include <arpa/inet.h>
#include <endian.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/vhost.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>

#include "selftest.h"

#define QUEUE_SIZE 256
#define BUFFER_SIZE 128

/*
 * A split virtqueue: addresses of the guest are those of the program. Each buffer has one
 * descriptor, of the same number. The numbers in it are little-endian, as in virtio 1.0.
 */
struct virtqueue {
	struct vring_desc desc[QUEUE_SIZE];
	struct {
		__u16 flags;
		__u16 idx;
		__u16 ring[QUEUE_SIZE];
		__u16 event;
	} avail;
	struct {
		__u16 flags;
		__u16 idx;
		struct vring_used_elem ring[QUEUE_SIZE];
		__u16 event;
	} used __attribute__((aligned(VRING_USED_ALIGN_SIZE)));
	__u16 taken;		/* of the used ones; the guest's own */
	char buffers[QUEUE_SIZE][BUFFER_SIZE];
};

/* @flags: VRING_DESC_F_WRITE for buffers that the device fills. */
static inline void virtqueue_init(struct virtqueue *q, __u16 flags)
{
	memset(q, 0, sizeof(*q));
	for (unsigned int i = 0; i < QUEUE_SIZE; i++) {
		q->desc[i].addr = htole64((unsigned long)q->buffers[i]);
		q->desc[i].len = htole32(BUFFER_SIZE);
		q->desc[i].flags = htole16(flags);
	}
}

/* The guest gives a buffer to the device. */
static inline void virtqueue_give(struct virtqueue *q, __u16 buffer)
{
	__u16 next = le16toh(q->avail.idx);

	q->avail.ring[next % QUEUE_SIZE] = htole16(buffer);
	__atomic_store_n(&q->avail.idx, htole16(next + 1), __ATOMIC_RELEASE);
}

/* The number of a buffer that the device has used; -1: none. */
static inline int virtqueue_take(struct virtqueue *q)
{
	if (le16toh(__atomic_load_n(&q->used.idx, __ATOMIC_ACQUIRE)) == q->taken)
		return -1;
	return le32toh(q->used.ring[q->taken++ % QUEUE_SIZE].id);
}

/* After virtqueue_give(): whether the device wants to be told. */
static inline bool virtqueue_wants_kick(struct virtqueue *q)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return !(__atomic_load_n(&q->used.flags, __ATOMIC_RELAXED) &
		 htole16(VRING_USED_F_NO_NOTIFY));
}

#define HEADER_SIZE sizeof(struct virtio_net_hdr_mrg_rxbuf)
/* For local experiments: nobody else sends it. */
#define FRAME_TYPE 0x88b5

/* A frame of the least length, with a number. */
struct frame {
	struct ether_header ether;
	__u64 number;
	char rest[60 - sizeof(struct ether_header) - 8];
} __attribute__((packed));

/* The numbers of the two queues are those of virtio. */
enum { RX, TX, QUEUES };

/**
 * struct vhost_net - a device
 * @fd: of vhost
 * @tap: the other side of the network interface
 * @socket: sends frames to the interface, which come into the queue RX
 * @memory: of the guest
 */
struct vhost_net {
	int fd;
	int tap;
	int socket;
	struct virtqueue *memory;
};

static inline bool interface_up(int socket, struct ifreq *request)
{
	if (ioctl(socket, SIOCGIFFLAGS, request))
		return false;
	request->ifr_flags |= IFF_UP;
	return !ioctl(socket, SIOCSIFFLAGS, request);
}

/* The interface of a tap, in the namespace of the caller. */
static inline bool tap_open(struct vhost_net *v)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	struct sockaddr_ll address = { .sll_family = AF_PACKET };
	int size = HEADER_SIZE;

	v->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	v->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (v->tap < 0 || v->socket < 0 || ioctl(v->tap, TUNSETIFF, &request) ||
	    ioctl(v->tap, TUNSETVNETHDRSZ, &size) || !interface_up(v->socket, &request))
		return false;
	address.sll_ifindex = if_nametoindex(request.ifr_name);
	return !bind(v->socket, (struct sockaddr *)&address, sizeof(address));
}

static inline bool vhost_set_memory(struct vhost_net *v)
{
	struct {
		struct vhost_memory table;
		struct vhost_memory_region region;
	} memory = { { .nregions = 1 }, {
		.guest_phys_addr = (unsigned long)v->memory,
		.memory_size = QUEUES * sizeof(*v->memory),
		.userspace_addr = (unsigned long)v->memory,
	} };

	return !ioctl(v->fd, VHOST_SET_MEM_TABLE, &memory);
}

static inline bool vhost_set_queue(struct vhost_net *v, unsigned int i)
{
	struct vhost_vring_state size = { i, QUEUE_SIZE }, base = { i, 0 };
	struct virtqueue *q = &v->memory[i];
	struct vhost_vring_addr addresses = {
		.index = i,
		.desc_user_addr = (unsigned long)q->desc,
		.avail_user_addr = (unsigned long)&q->avail,
		.used_user_addr = (unsigned long)&q->used,
	};

	virtqueue_init(q, i == RX ? VRING_DESC_F_WRITE : 0);
	return !ioctl(v->fd, VHOST_SET_VRING_NUM, &size) &&
	       !ioctl(v->fd, VHOST_SET_VRING_BASE, &base) &&
	       !ioctl(v->fd, VHOST_SET_VRING_ADDR, &addresses);
}

/* The eventfd that the guest signals. */
static inline bool vhost_set_kick(struct vhost_net *v, unsigned int i, int eventfd)
{
	struct vhost_vring_file file = { i, eventfd };

	return !ioctl(v->fd, VHOST_SET_VRING_KICK, &file);
}

/* The eventfd that vhost signals; -1: none. */
static inline bool vhost_set_call(struct vhost_net *v, unsigned int i, int eventfd)
{
	struct vhost_vring_file file = { i, eventfd };

	return !ioctl(v->fd, VHOST_SET_VRING_CALL, &file);
}

/* From here on vhost works; @tap is -1 for it to stop. */
static inline bool vhost_set_backend(struct vhost_net *v, unsigned int i, int tap)
{
	struct vhost_vring_file file = { i, tap };

	return !ioctl(v->fd, VHOST_NET_SET_BACKEND, &file);
}

static inline int vhost_device_open(void)
{
	int fd = open("/dev/vhost-net", O_RDWR | O_CLOEXEC);

	if (fd < 0 && system("modprobe -qa tun vhost_net") == 0)
		fd = open("/dev/vhost-net", O_RDWR | O_CLOEXEC);
	return fd;
}

/* Without eventfds and backend. What there is of it is for vhost_close(), if this fails. */
static inline bool vhost_open(struct vhost_net *v)
{
	__u64 features = 1ULL << VIRTIO_F_VERSION_1;

	v->tap = -1;
	v->socket = -1;
	v->fd = vhost_device_open();
	v->memory = mmap(NULL, QUEUES * sizeof(*v->memory), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return v->fd >= 0 && v->memory != MAP_FAILED && tap_open(v) &&
	       !ioctl(v->fd, VHOST_SET_OWNER) &&
	       !ioctl(v->fd, VHOST_SET_FEATURES, &features) && vhost_set_memory(v) &&
	       vhost_set_queue(v, RX) && vhost_set_queue(v, TX);
}

static inline void vhost_close(struct vhost_net *v)
{
	close(v->fd);
	close(v->tap);
	close(v->socket);
	if (v->memory != MAP_FAILED)
		munmap(v->memory, QUEUES * sizeof(*v->memory));
}

static inline void frame_init(struct frame *frame, __u64 number)
{
	*frame = (struct frame){ .number = number };
	memset(frame->ether.ether_dhost, 0xff, ETH_ALEN);
	frame->ether.ether_shost[0] = 2;
	frame->ether.ether_type = htons(FRAME_TYPE);
}

/* From the network to the guest. */
static inline bool vhost_send(struct vhost_net *v, __u64 number)
{
	struct frame frame;

	frame_init(&frame, number);
	return send(v->socket, &frame, sizeof(frame), 0) == sizeof(frame);
}

#endif /* VHOST_NET_H */
