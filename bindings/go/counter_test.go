// SPDX-License-Identifier: GPL-2.0-only

package flowfd_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"example.org/flowfd"
	"example.org/flowfd/internal/sys"
)

func open(t *testing.T, options flowfd.Options) *flowfd.Counter {
	t.Helper()
	c, err := flowfd.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func take(t *testing.T, c *flowfd.Counter) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	value, err := c.Take(ctx)
	if err != nil {
		t.Error(err)
	}
	return value
}

func add(t *testing.T, c *flowfd.Counter, value uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Add(ctx, value); err != nil {
		t.Error(err)
	}
}

// Until a goroutine waits, most likely.
func rest() {
	time.Sleep(20 * time.Millisecond)
}

func TestDeadline(t *testing.T) {
	c := open(t, flowfd.Options{Maximum: 3, Initial: 2})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := c.Add(ctx, 1)
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) ||
		!os.IsTimeout(err) {
		t.Errorf("an add without room: %v", err)
	}
	if value := take(t, c); value != 2 {
		t.Errorf("took %d", value)
	}
	if _, err := c.Take(ctx); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a take without a count: %v", err)
	}
	// Its time has passed, but it need not wait.
	if err := c.Add(ctx, 1); err != nil {
		t.Error(err)
	}
	if value, err := c.Take(ctx); err != nil || value != 1 {
		t.Errorf("took %d, %v", value, err)
	}
}

func TestCancel(t *testing.T) {
	for _, adds := range []bool{false, true} {
		c := open(t, flowfd.Options{Maximum: 2})
		if adds {
			add(t, c, 1)
		}
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error)
		for i := 0; i < 3; i++ {
			go func() {
				if adds {
					result <- c.Add(ctx, 1)
				} else {
					_, err := c.Take(ctx)
					result <- err
				}
			}()
		}
		rest()
		cancel()
		for i := 0; i < 3; i++ {
			err := <-result
			if !errors.Is(err, context.Canceled) || os.IsTimeout(err) {
				t.Errorf("cancelled: %v", err)
			}
		}
		// Nothing has changed, and others may wait.
		if count, err := c.Count(); err != nil || (count == 1) != adds {
			t.Errorf("count %d, %v", count, err)
		}
		go func() {
			rest()
			if adds {
				take(t, c)
			} else {
				add(t, c, 1)
			}
			result <- nil
		}()
		if adds {
			add(t, c, 1)
		} else {
			take(t, c)
		}
		<-result
	}
}

func TestClose(t *testing.T) {
	c := open(t, flowfd.Options{Maximum: 2})
	add(t, c, 1)
	var waits sync.WaitGroup
	for i := 0; i < 3; i++ {
		waits.Add(1)
		go func() {
			defer waits.Done()
			if err := c.Add(context.Background(), 1); !errors.Is(err, os.ErrClosed) {
				t.Errorf("add: %v", err)
			}
		}()
	}
	empty := open(t, flowfd.Options{})
	for i := 0; i < 3; i++ {
		waits.Add(1)
		go func() {
			defer waits.Done()
			if _, err := empty.Take(context.Background()); !errors.Is(err, os.ErrClosed) {
				t.Errorf("take: %v", err)
			}
		}()
	}
	rest()
	fd := c.Fd()
	if c.Close() != nil || empty.Close() != nil {
		t.Error("close")
	}
	waits.Wait()
	var status syscall.Stat_t
	if err := syscall.Fstat(int(fd), &status); err != syscall.EBADF {
		t.Errorf("the descriptor: %v", err)
	}
	if err := c.Close(); err != os.ErrClosed {
		t.Errorf("twice: %v", err)
	}
	_, addError := c.TryAdd(1)
	_, _, takeError := c.TryTake()
	_, countError := c.Count()
	_, shareError := c.Share()
	_, exportError := c.Export()
	for _, err := range []error{addError, takeError, countError, shareError, exportError} {
		if err != os.ErrClosed {
			t.Errorf("after close: %v", err)
		}
	}
	if c.Fd() != ^uintptr(0) || c.Mapped() {
		t.Error("a closed counter has a descriptor")
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// At most so many descriptors are open, when calls that are being made have ended.
func atMost(t *testing.T, before int) {
	t.Helper()
	for i := 0; i < 100 && descriptors(t) > before; i++ {
		runtime.GC()
		rest()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}

func TestNothingIsLeftOpen(t *testing.T) {
	runtime.GC()
	rest()
	before := descriptors(t)
	for i := 0; i < 10; i++ {
		c := open(t, flowfd.Options{Maximum: 2})
		go func() { rest(); add(t, c, 1) }()
		take(t, c)
		add(t, c, 1)
		go func() { rest(); take(t, c) }()
		add(t, c, 1)
		c.Close()
		flowfd.New(flowfd.Options{Initial: 2, Maximum: 1})
		flowfd.New(flowfd.Options{Overflow: 7})
	}
	atMost(t, before)
	// Of what nobody closes as well.
	for i := 0; i < 10; i++ {
		if _, err := flowfd.New(flowfd.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	atMost(t, before)
}

// Producers and consumers that sleep and wake each other; each value counts once.
func crowd(t *testing.T, options flowfd.Options, producers, consumers, adds, largest int) {
	c := open(t, options)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	taken := make(chan uint64)
	for i := 0; i < consumers; i++ {
		go func() {
			for {
				value, err := c.Take(ctx)
				if err != nil {
					return
				}
				taken <- value
			}
		}()
	}
	wanted, sum := uint64(0), uint64(0)
	for i := 0; i < producers; i++ {
		for j := 0; j < adds; j++ {
			wanted += uint64(j%largest + 1)
		}
		go func() {
			for j := 0; j < adds; j++ {
				add(t, c, uint64(j%largest+1))
			}
		}()
	}
	end := time.After(2 * time.Minute)
	for sum < wanted {
		select {
		case value := <-taken:
			sum += value
		case <-end:
			t.Fatalf("%+v: %d of %d", options, sum, wanted)
		}
	}
	if sum != wanted {
		t.Errorf("%+v: %d of %d", options, sum, wanted)
	}
}

func TestCrowd(t *testing.T) {
	for _, shared := range []bool{false, true} {
		crowd(t, flowfd.Options{Shared: shared}, 3, 3, 3000, 1)
		crowd(t, flowfd.Options{Shared: shared, Maximum: 2}, 3, 3, 1000, 1)
		crowd(t, flowfd.Options{Shared: shared, Maximum: 5}, 3, 2, 200, 4)
	}
	crowd(t, flowfd.Options{Semaphore: true}, 2, 2, 500, 2)
}

// What TryTake takes beside a goroutine that waits must not leave that asleep.
func TestTryTakeBesideTake(t *testing.T) {
	c := open(t, flowfd.Options{})
	const rounds = 3000
	taken := make(chan uint64, rounds)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for {
			value, err := c.Take(ctx)
			if err != nil {
				close(taken)
				return
			}
			taken <- value
		}
	}()
	var sum uint64
	for i := 0; i < rounds; i++ {
		add(t, c, 1)
		value, _, err := c.TryTake()
		if err != nil {
			t.Fatal(err)
		}
		sum += value
		if i%100 == 0 {
			rest()
		}
	}
	add(t, c, 1)
	for i := 0; i < 1000; i++ {
		if count, _ := c.Count(); count == 0 {
			break
		}
		rest()
	}
	cancel()
	for value := range taken {
		sum += value
	}
	if sum != rounds+1 {
		t.Errorf("%d of %d: one that waits was not told", sum, rounds+1)
	}
}

// Each take of a semaphore takes 1.
func TestSemaphoreBesideTake(t *testing.T) {
	c := open(t, flowfd.Options{Semaphore: true})
	for i := 0; i < 20; i++ {
		taken := make(chan uint64)
		go func() { taken <- take(t, c) }()
		rest()
		add(t, c, 5)
		sum := uint64(0)
		for sum < 4 {
			value, ok, err := c.TryTake()
			if err != nil || ok && value != 1 {
				t.Fatalf("took %d, %v", value, err)
			}
			sum += value
		}
		if value := <-taken; value != 1 {
			t.Errorf("took %d", value)
		}
	}
}

// With the module the descriptor is writable if there is some room.
func TestRoomForAPart(t *testing.T) {
	c := open(t, flowfd.Options{Maximum: 5, Initial: 3})
	done := make(chan struct{})
	go func() {
		add(t, c, 3)
		close(done)
	}()
	rest()
	if count, err := c.Count(); err != nil || count != 3 {
		t.Errorf("count %d, %v", count, err)
	}
	if value := take(t, c); value != 3 {
		t.Errorf("took %d", value)
	}
	<-done
	if value := take(t, c); value != 3 {
		t.Errorf("took %d", value)
	}
}

// A goroutine that waits has no thread.
func TestThreads(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var waits sync.WaitGroup
	for i := 0; i < 100; i++ {
		c := open(t, flowfd.Options{})
		for j := 0; j < 5; j++ {
			waits.Add(1)
			go func() {
				defer waits.Done()
				c.Take(ctx)
			}()
		}
	}
	time.Sleep(200 * time.Millisecond)
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) > 50 {
		t.Errorf("%d threads, %v", len(threads), err)
	}
	cancel()
	waits.Wait()
}

// A second object of a counter, by which a test can do what Go's has no method for.
func second(t *testing.T, c *flowfd.Counter) *sys.Counter {
	t.Helper()
	fds, err := c.Export()
	if err != nil {
		t.Fatal(err)
	}
	for i := range fds {
		if fds[i], err = syscall.Dup(fds[i]); err != nil {
			t.Fatal(err)
		}
	}
	other, err := sys.Import(fds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}

// Another process may set the policy while an add waits.
func TestOverflowChanges(t *testing.T) {
	c := open(t, flowfd.Options{Maximum: 5, Initial: 3, Shared: true})
	result := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() { result <- c.Add(ctx, 3) }()
	rest()
	if err := second(t, c).SetOverflow(uint32(flowfd.Fail)); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("an add that fails: %v", err)
	}
	if count, err := c.Count(); err != nil || count != 3 {
		t.Errorf("count %d, %v", count, err)
	}
}

// The kernel has 500 paths from a file through an epoll in an epoll.
func TestTooManyPollers(t *testing.T) {
	c := open(t, flowfd.Options{})
	outer, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { syscall.Close(outer) }()
	var full error
	for i := 0; i < 1000 && full == nil; i++ {
		inner, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(inner)
		event := syscall.EpollEvent{Events: syscall.EPOLLIN}
		err = syscall.EpollCtl(inner, syscall.EPOLL_CTL_ADD, int(c.Fd()), &event)
		if err != nil {
			t.Fatal(err)
		}
		full = syscall.EpollCtl(outer, syscall.EPOLL_CTL_ADD, inner, &event)
	}
	if full == nil {
		t.Skip("the kernel has no limit")
	}
	before := descriptors(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := 0; i < 3; i++ {
		_, err = c.Take(ctx)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "Take: the runtime") {
			t.Errorf("take: %v", err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
	// Then there is room for it.
	syscall.Close(outer)
	outer = -1
	go func() { rest(); add(t, c, 1) }()
	if value := take(t, c); value != 1 {
		t.Errorf("took %d", value)
	}
}

// What was added is in the count, though nobody could be told.
func TestAddedAndNobodyTold(t *testing.T) {
	c := open(t, flowfd.Options{})
	// There is somebody to tell.
	if _, ok, err := c.TryTake(); ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(epoll)
	event := syscall.EpollEvent{Events: syscall.EPOLLIN}
	if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, int(c.Fd()), &event); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	// The program has closed the descriptor, and its number is another file's.
	if err := syscall.Dup3(int(other.Fd()), int(c.Fd()), syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	added, err := c.TryAdd(2)
	if !added || !errors.Is(err, syscall.EPERM) {
		t.Errorf("%v, %v", added, err)
	}
	if value, ok, err := c.TryTake(); value != 2 || !ok || err != nil {
		t.Errorf("took %d, %v, %v", value, ok, err)
	}
}

// refuse has a system call fail on this thread: seccomp(2).
func refuse(number uintptr, errno syscall.Errno) error {
	const noNewPrivileges, filtering, fail, allow = 38, 2, 0x50000, 0x7fff0000
	filter := [...]syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: uint32(number)},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: fail | uint32(errno)},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: allow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0)
	if err == 0 {
		_, _, err = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, filtering,
			uintptr(unsafe.Pointer(&program)))
	}
	if err != 0 {
		return err
	}
	return nil
}

// EPERM would say that it was added.
func TestRefusedWait(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS} {
		c := open(t, flowfd.Options{Maximum: 2})
		add(t, c, 1)
		var err, skip error
		done := make(chan struct{})
		go func() {
			defer close(done)
			// For ever, so that the thread ends, too.
			runtime.LockOSThread()
			if skip = refuse(syscall.SYS_EPOLL_CREATE1, errno); skip == nil {
				err = c.Add(context.Background(), 1)
			}
		}()
		<-done
		if skip != nil {
			t.Skip("no filters: ", skip)
		}
		if !errors.Is(err, syscall.EACCES) {
			t.Errorf("%v: %v", errno, err)
		}
		if value := take(t, c); value != 1 {
			t.Errorf("took %d", value)
		}
	}
}

func TestErrors(t *testing.T) {
	_, err := flowfd.New(flowfd.Options{Bucket: flowfd.Bucket{Rate: 10}})
	var refused *flowfd.Error
	if !errors.As(err, &refused) || refused.Op != "New" || refused.Errno != syscall.EINVAL ||
		!strings.Contains(err.Error(), "a bucket without capacity") {
		t.Errorf("a bucket without capacity: %v", err)
	}
	c := open(t, flowfd.Options{Maximum: 3, Overflow: flowfd.Fail})
	add(t, c, 2)
	if err := c.Add(context.Background(), 1); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("an add that fails: %v", err)
	}
	if err := c.Add(context.Background(), 3); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an add that can never fit: %v", err)
	}
	if backend() == "fallback" {
		_, err = flowfd.New(flowfd.Options{Bucket: flowfd.Bucket{Capacity: 1, Rate: 10}})
		if !errors.Is(err, syscall.EOPNOTSUPP) {
			t.Errorf("a bucket: %v", err)
		}
		open(t, flowfd.Options{Bucket: flowfd.Bucket{Capacity: 1, Rate: 10}, OptionalBucket: true})
	}
	if _, err := os.Stat("/dev/flowfd"); err != nil {
		_, err = flowfd.New(flowfd.Options{NeedModule: true})
		if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "modprobe flowfd") {
			t.Errorf("the module: %v", err)
		}
	}
}
