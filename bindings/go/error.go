// SPDX-License-Identifier: MIT

package flowfd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"example.org/flowfd/internal/sys"
)

// Error is what the library says of a call that failed.
type Error struct {
	Op    string // the call
	Errno syscall.Errno
}

// Error says what was wrong, and what to do.
func (e *Error) Error() string {
	return "flowfd: " + e.Op + ": " + sys.Describe(e.Errno)
}

// Unwrap gives the number.
func (e *Error) Unwrap() error {
	return e.Errno
}

// Timeout is as in net.Error.
func (e *Error) Timeout() bool {
	return e.Errno.Timeout()
}

// The context of a wait has ended.
var errEnded = errors.New("the context has ended")

var errNotPolled = fmt.Errorf("a program made this counter with FLOWFD_NO_POLL, so no "+
	"goroutine can wait for it: %w", syscall.EOPNOTSUPP)

var errTooMany = fmt.Errorf("the runtime cannot poll this counter; the kernel has at most 500 "+
	"such waits for one counter, and a limit for each user (fs.epoll.max_user_watches): %w",
	syscall.ENOSPC)

func failed(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		return &Error{op, errno}
	}
	if err == errNotPolled || err == errTooMany {
		return fmt.Errorf("flowfd: %s: %w", op, err)
	}
	return err
}

// A wait that its context ended.
type ended struct {
	op    string
	cause error
}

func (e *ended) Error() string {
	return "flowfd: " + e.op + ": " + e.cause.Error()
}

func (e *ended) Unwrap() error {
	return e.cause
}

func (e *ended) Is(target error) bool {
	return target == os.ErrDeadlineExceeded && e.Timeout()
}

func (e *ended) Timeout() bool {
	return errors.Is(e.cause, context.DeadlineExceeded)
}
