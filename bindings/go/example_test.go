// SPDX-License-Identifier: MIT

package flowfd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"syscall"
	"time"

	"example.org/flowfd"
)

// A queue between two goroutines, of 64 items at most.
func Example() {
	ctx := context.Background()
	counter, err := flowfd.New(flowfd.Options{Maximum: 65})
	if err != nil {
		log.Fatal(err)
	}
	defer counter.Close()

	go func() {
		for item := 0; item < 1000; item++ {
			if err := counter.Add(ctx, 1); err != nil { // waits while 64 items wait
				log.Fatal(err)
			}
		}
	}()

	taken := uint64(0)
	for taken < 1000 {
		count, err := counter.Take(ctx) // waits while there is nothing, then takes all
		if err != nil {
			log.Fatal(err)
		}
		taken += count
	}
	fmt.Println(taken, "items")
	// Output: 1000 items
}

func ExampleCounter_Take_timeout() {
	counter, err := flowfd.New(flowfd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer counter.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = counter.Take(ctx)
	fmt.Println(errors.Is(err, os.ErrDeadlineExceeded), err)
	// Output: true flowfd: Take: context deadline exceeded
}

// The descriptor is open until the counter is garbage.
func ExampleCounter_Fd() {
	counter, err := flowfd.New(flowfd.Options{Initial: 1, Shared: true})
	if err != nil {
		log.Fatal(err)
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		log.Fatal(err)
	}
	defer syscall.Close(epoll)
	fd := int(counter.Fd())
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		log.Fatal(err)
	}
	events := make([]syscall.EpollEvent, 1)
	n, err := syscall.EpollWait(epoll, events, 0)
	fmt.Println(n, err)
	// Until here the descriptor must be open, though nothing else needs the counter.
	runtime.KeepAlive(counter)
	// Output: 1 <nil>
}

func ExampleCounter_TryAdd() {
	counter, err := flowfd.New(flowfd.Options{Maximum: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer counter.Close()

	for i := 0; i < 2; i++ {
		added, err := counter.TryAdd(1)
		fmt.Println(added, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}
