// SPDX-License-Identifier: MIT

package flowfd

import "example.org/flowfd/internal/sys"

// Overflow is what happens to an add that does not fit.
type Overflow uint32

const (
	Wait     Overflow = iota // it waits
	Fail                     // it fails with EAGAIN
	Saturate                 // what fits is added, the rest is lost
	Drop                     // all of it is lost
)

// Options are the settings of a new counter. Without any it is an eventfd(2) that works in
// memory.
type Options struct {
	// Initial is the count that it begins with.
	Initial uint64
	// Maximum is what the count stays below. 0: there is no limit.
	Maximum uint64
	// Overflow is what happens to an add that does not fit.
	Overflow Overflow
	// Bucket limits wakeups, which only the module can do.
	Bucket Bucket
	// OptionalBucket leaves the bucket out where there is no module.
	OptionalBucket bool
	// Semaphore makes a take take 1. Each call is a system call then.
	Semaphore bool
	// Shared says that other processes take, too, or that what polls the descriptor does
	// not call TryTake until it finds nothing. Without the module a take costs two system
	// calls more then.
	Shared bool
	// NeedModule makes it an error that there is no module, in place of an eventfd(2) and
	// memory.
	NeedModule bool
}

// Bucket is a token bucket: the longest burst of wakeups, and wakeups per second. Rate 0: no
// limit.
type Bucket struct {
	Capacity, Rate uint32
}

func (o *Options) settings() sys.Settings {
	s := sys.Settings{
		Initial:  o.Initial,
		Maximum:  o.Maximum,
		Capacity: o.Bucket.Capacity,
		Rate:     o.Bucket.Rate,
	}
	if o.Semaphore {
		// Without the module it is an eventfd(2), which waits itself, or never. New makes
		// that of the module wait again, whose calls can be made not to.
		s.Flags |= sys.Semaphore | sys.Nonblock
	}
	return s
}

func (o *Options) options() uint32 {
	var bits uint32
	if !o.NeedModule {
		bits |= sys.Fallback
	}
	if o.OptionalBucket {
		bits |= sys.OptionalBucket
	}
	if !o.Shared {
		bits |= sys.OneConsumer
	}
	return bits
}
