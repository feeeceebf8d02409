// SPDX-License-Identifier: MIT

package flowfd

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"example.org/flowfd/internal/sys"
)

// Counter is a counter, which any number of goroutines may use.
type Counter struct {
	c *sys.Counter

	// Calls that are being made; negative after Close.
	users   atomic.Int64
	closing chan struct{}

	// One at a time takes in memory, so that the counter may have one consumer.
	taking  sync.Mutex
	waiting bool // a goroutine polls for a count, and will not look before it is told

	readable, writable poller
}

// Added to users by Close.
const closed = -1 << 62

// How long an add waits that finds some room, and not enough: the descriptor is writable.
const (
	shortest = time.Millisecond
	longest  = 16 * time.Millisecond
)

func newCounter(c *sys.Counter) *Counter {
	counter := &Counter{
		c:        c,
		closing:  make(chan struct{}),
		readable: newPoller(syscall.EPOLLIN),
		writable: newPoller(syscall.EPOLLOUT),
	}
	// As with files.
	runtime.SetFinalizer(counter, (*Counter).Close)
	return counter
}

// New makes a counter.
func New(options Options) (*Counter, error) {
	c, err := sys.Open(options.settings(), options.options())
	if err == nil && options.Overflow != Wait {
		if err = c.SetOverflow(uint32(options.Overflow)); err != nil {
			c.Close()
		}
	}
	// O_NONBLOCK is also that of those who get the descriptor.
	if err == nil && options.Semaphore && c.IsOfModule() {
		if err = syscall.SetNonblock(c.FD(), false); err != nil {
			c.Close()
		}
	}
	if err != nil {
		return nil, failed("New", err)
	}
	return newCounter(c), nil
}

// acquire keeps the memory from being unmapped.
func (c *Counter) acquire() error {
	for {
		users := c.users.Load()
		if users < 0 {
			return os.ErrClosed
		}
		if c.users.CompareAndSwap(users, users+1) {
			return nil
		}
	}
}

func (c *Counter) release() {
	if c.users.Add(-1) == closed {
		c.free()
	}
}

func (c *Counter) free() {
	c.readable.close()
	c.writable.close()
	c.c.Close()
}

// Close closes the counter in this process. Goroutines that wait get os.ErrClosed.
func (c *Counter) Close() error {
	for {
		users := c.users.Load()
		if users < 0 {
			return os.ErrClosed
		}
		if !c.users.CompareAndSwap(users, users+closed) {
			continue
		}
		runtime.SetFinalizer(c, nil)
		close(c.closing)
		if users == 0 {
			c.free()
		}
		return nil
	}
}

// outcome is the error that a caller gets of one from a wait.
func (c *Counter) outcome(op string, ctx context.Context, err error) error {
	if err == errEnded {
		return &ended{op, ctx.Err()}
	}
	return failed(op, err)
}

// TryAdd adds to the count if there is room, and says whether there was. It is true also with
// the error EPERM: see Add.
func (c *Counter) TryAdd(value uint64) (bool, error) {
	if err := c.acquire(); err != nil {
		return false, err
	}
	defer c.release()
	err := c.c.TryAdd(value)
	if err == syscall.EAGAIN {
		return false, nil
	}
	return err == nil || err == syscall.EPERM, failed("TryAdd", err)
}

// Add adds to the count; it waits for room, but with Options.Overflow.
//
// What is refused gives a syscall.Errno: EINVAL if the value can never fit, as it is not below
// the maximum. EPERM says that it was added, but nobody could be told; after any other error
// nothing was added, also after EACCES, which is fs.ErrPermission as well: so ask for
// errors.Is(err, syscall.EPERM).
//
// With the module an add of more than 1 that finds room for a part of it looks again after at
// most 16 ms.
func (c *Counter) Add(ctx context.Context, value uint64) error {
	if err := c.acquire(); err != nil {
		return err
	}
	defer c.release()
	err := c.c.TryAdd(value)
	if err == syscall.EAGAIN {
		err = c.addLater(ctx, value)
	}
	return c.outcome("Add", ctx, err)
}

// fails says whether an add without room fails. Another process may change that at any time,
// and a module that is too old has no such policy.
func (c *Counter) fails() bool {
	flow, err := c.c.Flow()
	return err == nil && Overflow(flow.Overflow) == Fail
}

func (c *Counter) addLater(ctx context.Context, value uint64) error {
	// Without waiting for those that wait.
	if c.fails() {
		return syscall.EAGAIN
	}
	if err := c.writable.begin(ctx, c.closing); err != nil {
		return err
	}
	defer c.writable.end()
	for pause := shortest; ; pause *= 2 {
		added, err := c.waitForRoom(ctx, value)
		if added || err != nil {
			return err
		}
		if pause > longest {
			pause = longest
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-c.closing:
			err = os.ErrClosed
		case <-ctx.Done():
			err = errEnded
		}
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// waitForRoom ends when the value was added, or there is some room, though not enough.
func (c *Counter) waitForRoom(ctx context.Context, value uint64) (added bool, err error) {
	var refused error
	fails := false
	err = c.writable.wait(ctx, c.closing, c.c.FD(), func() bool {
		refused = c.c.TryAdd(value)
		added = refused == nil
		fails = refused == syscall.EAGAIN && c.fails()
		// Only after the descriptor was seen full somebody is told of room.
		return refused != syscall.EAGAIN || fails || c.c.IsWritable()
	})
	if err == nil && (fails || refused != syscall.EAGAIN) {
		err = refused
	}
	return added, err
}

// tryTake has one goroutine at a time take.
func (c *Counter) tryTake() (uint64, error) {
	c.taking.Lock()
	defer c.taking.Unlock()
	value, err := c.c.TryTake()
	// The one that polls is told of the next count only after a take that found nothing, which
	// is left to it. Semaphores are not in memory, and have no such rule.
	if err == nil && c.waiting && c.c.IsMapped() {
		c.waiting = false
		c.readable.again()
	}
	return value, err
}

// TryTake takes the count, which is 0 then, if there is one.
func (c *Counter) TryTake() (value uint64, ok bool, err error) {
	if err := c.acquire(); err != nil {
		return 0, false, err
	}
	defer c.release()
	value, err = c.tryTake()
	if err == syscall.EAGAIN {
		return 0, false, nil
	}
	return value, err == nil, failed("TryTake", err)
}

// Take takes the count, which is 0 then; it waits until there is one. Of a semaphore it takes
// 1.
func (c *Counter) Take(ctx context.Context) (uint64, error) {
	if err := c.acquire(); err != nil {
		return 0, err
	}
	defer c.release()
	value, err := c.tryTake()
	if err == syscall.EAGAIN {
		value, err = c.takeLater(ctx)
	}
	return value, c.outcome("Take", ctx, err)
}

func (c *Counter) takeLater(ctx context.Context) (value uint64, err error) {
	if err := c.readable.begin(ctx, c.closing); err != nil {
		return 0, err
	}
	defer c.readable.end()
	var refused error
	err = c.readable.wait(ctx, c.closing, c.c.FD(), func() bool {
		c.taking.Lock()
		defer c.taking.Unlock()
		value, refused = c.c.TryTake()
		c.waiting = refused == syscall.EAGAIN
		return !c.waiting
	})
	c.taking.Lock()
	c.waiting = false
	c.taking.Unlock()
	if err == nil {
		err = refused
	}
	return value, err
}

func (c *Counter) flow(op string) (sys.Flow, error) {
	if err := c.acquire(); err != nil {
		return sys.Flow{}, err
	}
	defer c.release()
	flow, err := c.c.Flow()
	return flow, failed(op, err)
}

// Count is the count now, which others may change meanwhile.
func (c *Counter) Count() (uint64, error) {
	flow, err := c.flow("Count")
	return flow.Count, err
}

// Lost is what Saturate and Drop have lost.
func (c *Counter) Lost() (uint64, error) {
	flow, err := c.flow("Lost")
	return flow.Lost, err
}

// Fd is the descriptor, for poll(2) and epoll(7): it is readable while there is a count. It
// stays the counter's. Before it is polled, TryTake must have found nothing, but with
// Options.Shared. After Close it is the largest number.
//
// As with os.File, it is closed when the Counter is garbage, also if its number is still used:
// then the number may be that of another file. So have runtime.KeepAlive(counter), or
// counter.Close(), after the last use.
func (c *Counter) Fd() uintptr {
	if c.acquire() != nil {
		return ^uintptr(0)
	}
	defer c.release()
	return uintptr(c.c.FD())
}

// Mapped says whether adds and takes are in memory.
func (c *Counter) Mapped() bool {
	if c.acquire() != nil {
		return false
	}
	defer c.release()
	return c.c.IsMapped()
}
