// SPDX-License-Identifier: MIT

package flowfd

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

/*
A poller has goroutines wait until a descriptor is readable, or writable, one at a time and
in their order.

The descriptor may block, and its O_NONBLOCK is that of all who have it. So what the runtime
polls is an epoll(7) of our own, in which the descriptor is. The kernel has a counter in 500
epolls that are in another one, at most.
*/
type poller struct {
	turn   chan struct{} // who has put something in may wait
	events uint32
	file   *os.File // the epoll; opened by the first who waits
}

func newPoller(events uint32) poller {
	return poller{turn: make(chan struct{}, 1), events: events}
}

// refused is the error of a call that was to wait, as of the library: EPERM of an add says that
// it was made.
func refused(err error) error {
	if err == syscall.EPERM || err == syscall.ENOSYS {
		return syscall.EACCES
	}
	return err
}

func openEpoll(fd int, events uint32) (*os.File, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, refused(err)
	}
	event := syscall.EpollEvent{Events: events}
	err = syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, fd, &event)
	if err == syscall.EPERM {
		err = errNotPolled
	}
	if err == nil {
		err = syscall.SetNonblock(epoll, true)
	}
	if err != nil {
		syscall.Close(epoll)
		return nil, refused(err)
	}
	file := os.NewFile(uintptr(epoll), "flowfd")
	// NewFile does not say that the runtime cannot poll it.
	if file.SetReadDeadline(time.Time{}) != nil {
		file.Close()
		return nil, errTooMany
	}
	return file, nil
}

// begin waits for the turn; end gives it to the next.
func (p *poller) begin(ctx context.Context, closing <-chan struct{}) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-closing:
		return os.ErrClosed
	case <-ctx.Done():
		return errEnded
	}
}

func (p *poller) end() {
	<-p.turn
}

var past = time.Unix(1, 0)

// wait calls look, and again whenever the descriptor may have become ready, until look says
// that it is done, or the context or the counter ends.
func (p *poller) wait(ctx context.Context, closing <-chan struct{}, fd int, look func() bool) error {
	var err error
	if p.file == nil {
		if p.file, err = openEpoll(fd, p.events); err != nil {
			return err
		}
	}
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	finished, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-finished:
			return
		case <-closing:
		case <-ctx.Done():
		}
		p.again()
	}()
	for {
		err = conn.Read(func(uintptr) bool { return look() })
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		// First, so that an end or a call of again() that comes now is not missed.
		p.file.SetReadDeadline(time.Time{})
		if err = ending(ctx, closing); err != nil {
			break
		}
	}
	close(finished)
	<-stopped
	return err
}

// ending is why a wait ends, if it does.
func ending(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return os.ErrClosed
	case <-ctx.Done():
		return errEnded
	default:
		return nil
	}
}

// again has the one that waits look again.
func (p *poller) again() {
	p.file.SetReadDeadline(past)
}

func (p *poller) close() {
	if p.file != nil {
		p.file.Close()
	}
}
