// SPDX-License-Identifier: MIT

package flowfd

import (
	"encoding/hex"
	"fmt"
	"io"

	"example.org/flowfd/internal/sys"
)

// Export gives the descriptors that make the counter, for another process: to be sent in this
// order by SCM_RIGHTS (syscall.UnixRights), or inherited. They stay the counter's, and are
// open as long as it is: see Fd. Options.Shared is for a counter of which both sides take.
//
// Whoever has them can add, take, and disturb those who use the counter. It fails with
// EOPNOTSUPP for a semaphore without the module.
func (c *Counter) Export() ([]int, error) {
	if err := c.acquire(); err != nil {
		return nil, err
	}
	defer c.release()
	fds, err := c.c.Export()
	return fds, failed("Export", err)
}

// Import makes a counter of descriptors from Export, which need not be of a program in Go. If
// there is no error, they are the counter's. Files that are not what they must be are refused.
// What receives them by recvmsg(2) does so with syscall.MSG_CMSG_CLOEXEC: otherwise programs
// that are started meanwhile get them, too.
//
// Of a counter with FLOWFD_NO_POLL there are TryAdd and TryTake only: what would wait fails with
// EOPNOTSUPP.
func Import(fds ...int) (*Counter, error) {
	c, err := sys.Import(fds)
	if err != nil {
		return nil, failed("Import", err)
	}
	return newCounter(c), nil
}

// Key opens a counter of the module in another process. It can lie in shared memory or in a
// file, as its bytes, and must be kept as a password is.
type Key [sys.KeySize]byte

// String does not show the secret.
func (k Key) String() string {
	return "flowfd.Key(" + hex.EncodeToString(k[:2]) + "...)"
}

// Format prints String, whatever the verb is. Package fmt does not call it for a field of a
// struct that is not exported.
func (k Key) Format(state fmt.State, verb rune) {
	io.WriteString(state, k.String())
}

// Share gives the key of the counter, the same each time. Without the module there are no
// keys, and it fails with ENOTTY: see Export.
func (c *Counter) Share() (Key, error) {
	var key Key
	if err := c.acquire(); err != nil {
		return key, err
	}
	defer c.release()
	err := c.c.Share((*[sys.KeySize]byte)(&key))
	return key, failed("Share", err)
}

// OpenShared opens the counter that has a key. It fails with ENOENT if there is none, or not in
// this user namespace, and with ENODEV without the module.
func OpenShared(key Key) (*Counter, error) {
	c, err := sys.OpenKey((*[sys.KeySize]byte)(&key))
	if err != nil {
		return nil, failed("OpenShared", err)
	}
	return newCounter(c), nil
}
