// SPDX-License-Identifier: MIT

// Package sys has the C library of flowfd, compiled by cgo, and its calls for counters. None
// of them waits. Package flowfd is what to use.
//
// The files of C here, but version.h, are links in a checkout.
package sys

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE -I${SRCDIR} -include ${SRCDIR}/version.h

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <flowfd.h>

struct taken {
	uint64_t value;
	int result;
};

// Without a pointer into memory of Go, which would be checked, and allocated.
static struct taken try_take(const struct flowfd_counter *c)
{
	struct taken taken = { 0 };

	do {
		taken.result = flowfd_try_take(c, &taken.value);
	} while (taken.result == -EINTR);
	return taken;
}

static int try_add(const struct flowfd_counter *c, uint64_t value)
{
	int ret;

	do {
		ret = flowfd_add_with(c, value, 0, FLOWFD_NONBLOCK);
	} while (ret == -EINTR);
	return ret;
}

static int is_writable(const struct flowfd_counter *c)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLOUT };

	// A signal can interrupt it: then the caller looks again.
	return poll(&poller, 1, 0) != 0;
}
*/
import "C"

import (
	"syscall"
	"unsafe"

	_ "example.org/flowfd/internal/sys/linux"
)

// What Settings and Open take.
const (
	Semaphore      = C.FLOWFD_SEMAPHORE
	Nonblock       = C.FLOWFD_NONBLOCK
	Fallback       = C.FLOWFD_FALLBACK
	OptionalBucket = C.FLOWFD_OPTIONAL_BUCKET
	OneConsumer    = C.FLOWFD_ONE_CONSUMER
	NoPoll         = C.FLOWFD_NO_POLL
)

// ExportMax is how many descriptors make a counter, at most.
const ExportMax = C.FLOWFD_EXPORT_MAX

// KeySize is the size of a key in bytes.
const KeySize = C.sizeof_struct_flowfd_key

// Counter is a counter of C. It is not copied, and nothing uses it after Close.
type Counter struct {
	c *C.struct_flowfd_counter // in memory of C
}

// allocate has make fill in a counter.
func allocate(make func(c *C.struct_flowfd_counter) C.int) (*Counter, error) {
	c := (*C.struct_flowfd_counter)(C.malloc(C.sizeof_struct_flowfd_counter))
	if ret := make(c); ret < 0 {
		C.free(unsafe.Pointer(c))
		return nil, result(ret)
	}
	return &Counter{c}, nil
}

// Settings are those of struct flowfd_create_counter.
type Settings struct {
	Initial, Maximum uint64
	Flags            uint32
	Capacity, Rate   uint32
}

// Flow is what struct flowfd_flow says of a counter.
type Flow struct {
	Count, Lost uint64
	Overflow    uint32
}

func result(ret C.int) error {
	if ret < 0 {
		return syscall.Errno(-ret)
	}
	return nil
}

// Describe is what the library says of an error, and what to do.
func Describe(errno syscall.Errno) string {
	return C.GoString(C.flowfd_strerror(-C.int(errno)))
}

// Open makes a counter.
func Open(s Settings, options uint32) (*Counter, error) {
	settings := C.struct_flowfd_create_counter{
		initial: C.__u64(s.Initial),
		maximum: C.__u64(s.Maximum),
		flags:   C.__u32(s.Flags),
		qos: C.struct_eventfd_qos{
			token_capacity: C.__u32(s.Capacity),
			token_rate:     C.__u32(s.Rate),
		},
	}
	return allocate(func(c *C.struct_flowfd_counter) C.int {
		return C.flowfd_counter_open(c, &settings,
			C.sizeof_struct_flowfd_create_counter, C.uint(options))
	})
}

// Import makes a counter of descriptors, which are the counter's if there is no error.
func Import(fds []int) (*Counter, error) {
	var numbers [ExportMax + 1]C.int
	count := C.uint(0)
	for _, fd := range fds {
		// What is cut off would be another descriptor.
		if int(C.int(fd)) != fd {
			return nil, syscall.EBADF
		}
		if int(count) < len(numbers) {
			numbers[count] = C.int(fd)
			count++
		}
	}
	return allocate(func(c *C.struct_flowfd_counter) C.int {
		return C.flowfd_counter_import(c, &numbers[0], count)
	})
}

// OpenKey opens the counter that has a key.
func OpenKey(key *[KeySize]byte) (*Counter, error) {
	// A key is bytes, as it lies in memory that processes share.
	var k C.struct_flowfd_key
	*(*[KeySize]byte)(unsafe.Pointer(&k)) = *key
	fd := C.flowfd_open_shared(&k, 0)
	if fd < 0 {
		return nil, result(fd)
	}
	c, err := allocate(func(c *C.struct_flowfd_counter) C.int {
		return C.flowfd_counter_map(c, fd, C.FLOWFD_PRODUCER|C.FLOWFD_CONSUMER)
	})
	if err != nil {
		syscall.Close(int(fd))
	}
	return c, err
}

// Close unmaps the counter, and closes its descriptors.
func (c *Counter) Close() {
	C.flowfd_counter_close(c.c)
	C.free(unsafe.Pointer(c.c))
}

// FD is its descriptor.
func (c *Counter) FD() int {
	return int(c.c.fd)
}

// TryAdd adds, or fails with EAGAIN.
func (c *Counter) TryAdd(value uint64) error {
	return result(C.try_add(c.c, C.uint64_t(value)))
}

// TryTake takes, or fails with EAGAIN; then the counter may be polled.
func (c *Counter) TryTake() (uint64, error) {
	taken := C.try_take(c.c)
	return uint64(taken.value), result(taken.result)
}

// IsWritable says whether poll(2) sees room for 1, or fails. If not, it is told of room later.
func (c *Counter) IsWritable() bool {
	return C.is_writable(c.c) != 0
}

// SetOverflow sets what happens to an add that does not fit.
func (c *Counter) SetOverflow(overflow uint32) error {
	flow := C.struct_flowfd_flow{
		overflow: C.__u32(overflow),
		set:      C.FLOWFD_SET_OVERFLOW,
	}
	return result(C.flowfd_counter_set_flow(c.c, &flow, C.sizeof_struct_flowfd_flow))
}

// Flow asks for count, losses and policy.
func (c *Counter) Flow() (Flow, error) {
	var flow C.struct_flowfd_flow
	ret := C.flowfd_counter_get_flow(c.c, &flow, C.sizeof_struct_flowfd_flow)
	return Flow{uint64(flow.count), uint64(flow.lost), uint32(flow.overflow)}, result(ret)
}

// IsOfModule says whether the kernel module has it.
func (c *Counter) IsOfModule() bool {
	return C.flowfd_features(c.c)&C.FLOWFD_HAS_MAXIMUM != 0
}

// IsMapped says whether adds and takes are in memory.
func (c *Counter) IsMapped() bool {
	return C.flowfd_counter_is_mapped(c.c) != 0
}

// Export gives the descriptors that make the counter, which stay the counter's.
func (c *Counter) Export() ([]int, error) {
	var numbers [ExportMax]C.int
	count := C.flowfd_counter_export(c.c, &numbers[0])
	if count < 0 {
		return nil, result(count)
	}
	fds := make([]int, count)
	for i := range fds {
		fds[i] = int(numbers[i])
	}
	return fds, nil
}

// Share gives the key of the counter.
func (c *Counter) Share(key *[KeySize]byte) error {
	var k C.struct_flowfd_key
	ret := C.flowfd_share(c.c.fd, &k)
	// Just after boot it waits for random numbers, and the runtime sends signals.
	for ret == -C.EINTR {
		ret = C.flowfd_share(c.c.fd, &k)
	}
	if ret < 0 {
		return result(ret)
	}
	*key = *(*[KeySize]byte)(unsafe.Pointer(&k))
	return nil
}
