// SPDX-License-Identifier: GPL-2.0-only

package flowfd_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/flowfd"
)

// The backend that the counters of these tests have.
func backend() string {
	if name := os.Getenv("FLOWFD_BACKEND"); name != "" {
		return name
	}
	if _, err := os.Stat("/dev/flowfd"); err == nil {
		return "module"
	}
	return "fallback"
}

func number(t *testing.T, word string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

var names = map[syscall.Errno]string{
	syscall.EAGAIN: "EAGAIN", syscall.EINVAL: "EINVAL", syscall.ENOTTY: "ENOTTY",
	syscall.EOPNOTSUPP: "EOPNOTSUPP",
}

func nameOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) && names[errno] != "" {
		return names[errno]
	}
	return err.Error()
}

func outcome(err error, good string) string {
	if err != nil {
		return nameOf(err)
	}
	return good
}

// For so long: what has not happened then is nothing.
func within(t *testing.T, ms string, call func(ctx context.Context) (string, error)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(),
		time.Duration(number(t, ms))*time.Millisecond)
	defer cancel()
	result, err := call(ctx)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.EAGAIN) {
		return "nothing"
	}
	return outcome(err, result)
}

func addedBy(other *flowfd.Counter, err error, value uint64) string {
	if err != nil {
		return nameOf(err)
	}
	defer other.Close()
	added, err := other.TryAdd(value)
	if err == nil && !added {
		return "EAGAIN"
	}
	return outcome(err, "ok")
}

func step(t *testing.T, c *flowfd.Counter, words []string) string {
	ctx := context.Background()
	switch words[0] {
	case "add":
		return outcome(c.Add(ctx, number(t, words[1])), "ok")
	case "try_add":
		added, err := c.TryAdd(number(t, words[1]))
		if err == nil && !added {
			return "nothing"
		}
		return outcome(err, "ok")
	case "add_for":
		return within(t, words[2], func(ctx context.Context) (string, error) {
			return "ok", c.Add(ctx, number(t, words[1]))
		})
	case "add_by_descriptors":
		fds, err := c.Export()
		for i := range fds {
			fds[i], _ = syscall.Dup(fds[i])
		}
		if err != nil {
			return nameOf(err)
		}
		other, err := flowfd.Import(fds...)
		return addedBy(other, err, number(t, words[1]))
	case "add_by_key":
		key, err := c.Share()
		if err != nil {
			return nameOf(err)
		}
		other, err := flowfd.OpenShared(key)
		return addedBy(other, err, number(t, words[1]))
	case "take":
		value, err := c.Take(ctx)
		return outcome(err, strconv.FormatUint(value, 10))
	case "try_take":
		value, ok, err := c.TryTake()
		if err == nil && !ok {
			return "nothing"
		}
		return outcome(err, strconv.FormatUint(value, 10))
	case "take_for":
		return within(t, words[1], func(ctx context.Context) (string, error) {
			value, err := c.Take(ctx)
			return strconv.FormatUint(value, 10), err
		})
	case "count":
		value, err := c.Count()
		return outcome(err, strconv.FormatUint(value, 10))
	case "lost":
		value, err := c.Lost()
		return outcome(err, strconv.FormatUint(value, 10))
	case "readable":
		return yes(polled(t, c, syscall.EPOLLIN))
	case "writable":
		return yes(polled(t, c, syscall.EPOLLOUT))
	case "mapped":
		return yes(c.Mapped())
	}
	t.Fatalf("unknown operation %s", words[0])
	return ""
}

// Whether the descriptor is ready now.
func polled(t *testing.T, c *flowfd.Counter, events uint32) bool {
	t.Helper()
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(epoll)
	event := syscall.EpollEvent{Events: events}
	if err := syscall.EpollCtl(epoll, syscall.EPOLL_CTL_ADD, int(c.Fd()), &event); err != nil {
		t.Fatal(err)
	}
	n, err := syscall.EpollWait(epoll, make([]syscall.EpollEvent, 1), 0)
	return err == nil && n == 1
}

var policies = map[string]flowfd.Overflow{"wait": flowfd.Wait, "fail": flowfd.Fail,
	"saturate": flowfd.Saturate, "drop": flowfd.Drop}

// What the table sets. False: this binding has no such counter, but TryAdd and TryTake.
func optionsOf(t *testing.T, words []string) (o flowfd.Options, ok bool) {
	o.Shared = true
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "initial":
			o.Initial = number(t, value)
		case "maximum":
			o.Maximum = number(t, value)
		case "overflow":
			o.Overflow = policies[value]
		case "semaphore":
			o.Semaphore = true
		case "bucket":
			capacity, rate, _ := strings.Cut(value, ",")
			o.Bucket.Capacity = uint32(number(t, capacity))
			o.Bucket.Rate = uint32(number(t, rate))
		case "one-consumer":
			o.Shared = false
		case "no-poll":
			// The runtime polls; what the counter does is the same.
		case "nonblock":
			return o, false
		default:
			t.Fatalf("unknown setting %s", name)
		}
	}
	return o, true
}

// Does what the table of cases says, and compares the results.
func TestCases(t *testing.T) {
	path := os.Getenv("FLOWFD_CASES")
	if path == "" {
		path = "../cases.txt"
	}
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var counter *flowfd.Counter
	var later chan string
	var name string
	checks, skipped := 0, false
	for _, text := range strings.Split(string(table), "\n") {
		line, only, _ := strings.Cut(text, " @")
		line, wanted, found := strings.Cut(line, " = ")
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' || only != "" && only != backend() {
			continue
		}
		if !found {
			wanted = "ok"
		}
		var got string
		switch words[0] {
		case "case":
			name = words[1]
			options, ok := optionsOf(t, words[2:])
			if skipped = !ok; skipped {
				continue
			}
			if counter != nil {
				counter.Close()
			}
			counter, err = flowfd.New(options)
			got = outcome(err, "ok")
		case "later":
			if skipped {
				continue
			}
			later = make(chan string, 1)
			go func(c *flowfd.Counter, result chan<- string) {
				time.Sleep(time.Duration(number(t, words[1])) * time.Millisecond)
				result <- step(t, c, words[2:])
			}(counter, later)
			continue
		case "join":
			if skipped {
				continue
			}
			got = <-later
		default:
			if skipped {
				continue
			}
			got = step(t, counter, words)
		}
		checks++
		if got != strings.TrimSpace(wanted) {
			t.Errorf("%s: %s: got %s", name, strings.TrimSpace(text), got)
		}
	}
	if checks < 100 {
		t.Errorf("only %d checks", checks)
	}
}
