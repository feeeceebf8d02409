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
polls is an epoll(7) of our own, in which the descriptor is.
*/
type poller struct {
	turn   chan struct{} // who has put something in may wait
	events uint32
	file   *os.File // the epoll; opened by the first who waits
}

func newPoller(events uint32) poller {
	return poller{turn: make(chan struct{}, 1), events: events}
}

func openEpoll(fd int, events uint32) (*os.File, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
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
		return nil, err
	}
	return os.NewFile(uintptr(epoll), "flowfd"), nil
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
	finished, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-finished:
			return
		case <-closing:
		case <-ctx.Done():
		}
		p.file.SetReadDeadline(past)
	}()
	err = conn.Read(func(uintptr) bool { return look() })
	close(finished)
	<-ended
	p.file.SetReadDeadline(time.Time{})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if ctx.Err() != nil {
		return errEnded
	}
	return os.ErrClosed
}

func (p *poller) close() {
	if p.file != nil {
		p.file.Close()
	}
}
