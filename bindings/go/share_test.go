// SPDX-License-Identifier: GPL-2.0-only

package flowfd_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"example.org/flowfd"
	"example.org/flowfd/internal/sys"
)

// What another process does, which has nothing in common with the test but a socket or a key.
func TestMain(m *testing.M) {
	switch os.Getenv("FLOWFD_TEST_ROLE") {
	case "import":
		c, err := receive(3)
		answer(c, err)
	case "open":
		var key flowfd.Key
		hex.Decode(key[:], []byte(os.Getenv("FLOWFD_TEST_KEY")))
		c, err := flowfd.OpenShared(key)
		answer(c, err)
	}
	os.Exit(m.Run())
}

func receive(socket int) (*flowfd.Counter, error) {
	control := make([]byte, 64)
	_, n, _, _, err := syscall.Recvmsg(socket, make([]byte, 1), control, syscall.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, err
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
			return nil, fmt.Errorf("descriptor %d is inherited: %v", fd, errno)
		}
	}
	return flowfd.Import(fds...)
}

// Adds 40 once something was taken, and 2.
func answer(c *flowfd.Counter, err error) {
	if err == nil {
		err = c.Add(context.Background(), 40)
	}
	if err == nil {
		err = c.Add(context.Background(), 2)
	}
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(0)
}

func process(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), "FLOWFD_TEST_ROLE="+role)
	return child
}

func meet(t *testing.T, c *flowfd.Counter, child *exec.Cmd, then func()) {
	t.Helper()
	var output strings.Builder
	child.Stdout = &output
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	then()
	rest()
	// Full before.
	if value := take(t, c); value != 9 {
		t.Errorf("took %d", value)
	}
	sum := take(t, c)
	if sum < 42 {
		sum += take(t, c)
	}
	if sum != 42 {
		t.Errorf("the other process added %d", sum)
	}
	if err := child.Wait(); err != nil || output.Len() != 0 {
		t.Errorf("the other process: %v, %s", err, output.String())
	}
}

func TestExport(t *testing.T) {
	c := open(t, flowfd.Options{Initial: 9, Maximum: 49})
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(ends[1]), "socket")
	defer other.Close()
	defer syscall.Close(ends[0])
	child := process(t, "import")
	child.ExtraFiles = []*os.File{other}
	meet(t, c, child, func() {
		fds, err := c.Export()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Sendmsg(ends[0], []byte{0}, syscall.UnixRights(fds...), nil, 0); err != nil {
			t.Fatal(err)
		}
	})
}

func TestImportRefuses(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	for _, test := range []struct {
		fds   []int
		errno syscall.Errno
	}{
		{nil, syscall.EINVAL},
		{[]int{ends[0], ends[1], 0}, syscall.EINVAL},
		{[]int{ends[0], ends[1], 0, 1, 2}, syscall.EINVAL},
		{ends[:], syscall.ENOTTY},
		{ends[:1], syscall.ENOTTY},
		{[]int{-1, -1}, syscall.EBADF},
		{[]int{math.MinInt + ends[0]}, syscall.EBADF},
	} {
		if _, err := flowfd.Import(test.fds...); !errors.Is(err, test.errno) {
			t.Errorf("%v: %v", test.fds, err)
		}
	}
	// They are still the caller's.
	if _, err := syscall.Write(ends[1], []byte{0}); err != nil {
		t.Error(err)
	}
}

// Another program may have made one that nobody can poll.
func TestNoPoll(t *testing.T) {
	if backend() == "module" {
		t.Skip("all counters of the module can be polled")
	}
	made, err := sys.Open(sys.Settings{Maximum: 2}, sys.Fallback|sys.NoPoll)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := made.Export()
	if err != nil {
		t.Fatal(err)
	}
	c, err := flowfd.Import(fds...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Take(context.Background())
	if !errors.Is(err, syscall.EOPNOTSUPP) ||
		!strings.HasPrefix(err.Error(), "flowfd: Take: a program made") {
		t.Errorf("take: %v", err)
	}
	add(t, c, 1)
	if err := c.Add(context.Background(), 1); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("add: %v", err)
	}
	if value := take(t, c); value != 1 {
		t.Errorf("took %d", value)
	}
}

// The secret is in no form of it.
func TestKeysAreNotPrinted(t *testing.T) {
	var key flowfd.Key
	for i := range key {
		key[i] = 0xb7
	}
	for _, verb := range "vsxXdqobcUt" {
		for _, flags := range []string{"", "+", "#", " ", "30"} {
			text := fmt.Sprintf("%"+flags+string(verb), key)
			if !strings.HasPrefix(text, "flowfd.Key") || len(text) > 20 {
				t.Errorf("%%%s%c: %s", flags, verb, text)
			}
		}
	}
	text := fmt.Sprintf("%v %d %x", []flowfd.Key{key}, &key, struct{ Key flowfd.Key }{key})
	if strings.Contains(text, "183 183 183") || strings.Contains(text, "b7b7b7") {
		t.Errorf("%s has the secret", text)
	}
}

// Of a semaphore others get the descriptor as well, and may want it to wait.
func TestSemaphoreWaits(t *testing.T) {
	c := open(t, flowfd.Options{Semaphore: true})
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, c.Fd(), syscall.F_GETFL, 0)
	if errno != 0 || (flags&syscall.O_NONBLOCK == 0) != (backend() == "module") {
		t.Errorf("flags %#o, %v", flags, errno)
	}
	if _, ok, err := c.TryTake(); ok || err != nil {
		t.Errorf("nothing: %v, %v", ok, err)
	}
}

func TestKeys(t *testing.T) {
	c := open(t, flowfd.Options{Initial: 9, Maximum: 49})
	key, err := c.Share()
	if backend() == "fallback" {
		if !errors.Is(err, syscall.ENOTTY) || !strings.Contains(err.Error(), "flowfd module") {
			t.Errorf("a key without the module: %v", err)
		}
		if _, err := os.Stat("/dev/flowfd"); err == nil {
			return
		}
		_, err = flowfd.OpenShared(key)
		if !errors.Is(err, syscall.ENODEV) || !strings.Contains(err.Error(), "modprobe flowfd") {
			t.Errorf("to open one: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Share(); err != nil || again != key {
		t.Errorf("another key, %v", err)
	}
	child := process(t, "open")
	child.Env = append(child.Env, "FLOWFD_TEST_KEY="+hex.EncodeToString(key[:]))
	meet(t, c, child, func() {})
	wrong := key
	wrong[len(wrong)-1]++
	if _, err := flowfd.OpenShared(wrong); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a wrong key: %v", err)
	}
	c.Close()
	if _, err := flowfd.OpenShared(key); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("after the close: %v", err)
	}
}
