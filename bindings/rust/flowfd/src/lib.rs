// SPDX-License-Identifier: MIT
//! Counters between threads, processes and event loops, in memory.
//!
//! A counter is an eventfd(2) that is added to and taken from in memory, and makes system
//! calls only if somebody sleeps or polls; it can have a maximum, so that a fast producer
//! waits. It runs with the kernel module of flowfd, and without it.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let (sender, receiver) = flowfd::Options::new().maximum(65).open()?;
//! let producer = std::thread::spawn(move || (0..1000).try_for_each(|_| sender.add(1)));
//! let mut taken = 0;
//! while taken < 1000 {
//!     taken += receiver.take()?; // sleeps while there is no count
//! }
//! producer.join().unwrap()?;
//! # Ok(())
//! # }
//! ```
//!
//! There is one [`Receiver`], which one thread at a time uses, so that takes are cheaper; and
//! as many [`Sender`]s as there are clones. Another process gets both by descriptors
//! ([`from_descriptors`]) or, with the module, by a key ([`open_shared`]). Errors are [`io::Error`]s with the number that C
//! has. A signal does not end what waits.

#![warn(missing_docs)]

use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_int;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{cell::Cell, fmt};

use flowfd_sys as sys;

mod share;

pub use share::{from_descriptors, open_shared, Key};

/// What happens to an add that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It waits.
    #[default]
    Wait,
    /// It fails with [`io::ErrorKind::WouldBlock`].
    Fail,
    /// What fits is added, the rest is lost.
    Saturate,
    /// All of it is lost.
    Drop,
}

/// Settings of a new counter; as they are, it is an eventfd(2) that works in memory.
#[derive(Clone, Debug)]
pub struct Options {
    settings: sys::flowfd_create_counter,
    options: u32,
    overflow: Overflow,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Settings as they are.
    pub fn new() -> Self {
        Options {
            settings: Default::default(),
            options: sys::FLOWFD_FALLBACK | sys::FLOWFD_ONE_CONSUMER,
            overflow: Overflow::Wait,
        }
    }

    /// The count that it begins with.
    pub fn initial(&mut self, count: u64) -> &mut Self {
        self.settings.initial = count;
        self
    }

    /// What the count stays below: an add waits for room.
    pub fn maximum(&mut self, maximum: u64) -> &mut Self {
        self.settings.maximum = maximum;
        self
    }

    /// What happens to an add that does not fit.
    pub fn overflow(&mut self, overflow: Overflow) -> &mut Self {
        self.overflow = overflow;
        self
    }

    /// A take takes 1. Each call is a system call then.
    pub fn semaphore(&mut self, yes: bool) -> &mut Self {
        set(&mut self.settings.flags, sys::FLOWFD_SEMAPHORE, yes);
        self
    }

    /// No call waits.
    pub fn nonblocking(&mut self, yes: bool) -> &mut Self {
        set(&mut self.settings.flags, sys::FLOWFD_NONBLOCK, yes);
        self
    }

    /// A limit for wakeups, which only the module has: tokens, and tokens per second.
    pub fn bucket(&mut self, capacity: u32, rate: u32) -> &mut Self {
        self.settings.qos = sys::eventfd_qos {
            token_capacity: capacity,
            token_rate: rate,
        };
        self
    }

    /// The receiver is polled only after `try_take()` has found nothing, as it is by default.
    /// Without the module that saves two system calls for each take. `false`: it is polled
    /// at any time, as an eventfd is.
    pub fn one_consumer(&mut self, yes: bool) -> &mut Self {
        set(&mut self.options, sys::FLOWFD_ONE_CONSUMER, yes);
        self
    }

    /// Nobody polls the descriptor: threads sleep in calls alone, which is cheaper.
    pub fn no_poll(&mut self, yes: bool) -> &mut Self {
        set(&mut self.options, sys::FLOWFD_NO_POLL, yes);
        self
    }

    /// Without the module, use an eventfd(2) and memory. `false`: that is an error.
    pub fn fallback(&mut self, yes: bool) -> &mut Self {
        set(&mut self.options, sys::FLOWFD_FALLBACK, yes);
        self
    }

    /// Makes the counter.
    pub fn open(&self) -> io::Result<(Sender, Receiver)> {
        let mut made = MaybeUninit::uninit();
        let size = size_of::<sys::flowfd_create_counter>();
        // SAFETY: it fills in what it is given, if it succeeds.
        check(unsafe {
            sys::flowfd_counter_open(made.as_mut_ptr(), &self.settings, size, self.options)
        })?;
        // SAFETY: it has.
        let counter = Counter(unsafe { made.assume_init() });
        if self.overflow != Overflow::Wait {
            let flow = sys::flowfd_flow {
                overflow: self.overflow as u32,
                set: sys::FLOWFD_SET_OVERFLOW,
                ..Default::default()
            };
            // SAFETY: the counter is open.
            check(unsafe {
                sys::flowfd_counter_set_flow(&counter.0, &flow, size_of::<sys::flowfd_flow>())
            })?;
        }
        Ok(ends_of(counter))
    }
}

fn ends_of(counter: Counter) -> (Sender, Receiver) {
    let counter = Arc::new(counter);
    let sender = Sender {
        counter: Arc::clone(&counter),
    };
    let receiver = Receiver {
        counter,
        one: PhantomData,
    };
    (sender, receiver)
}

fn set(word: &mut u32, bit: u32, yes: bool) {
    *word = if yes { *word | bit } else { *word & !bit };
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    Ok(result)
}

/// What the library says of an error, and what to do: more than [`io::Error`] knows.
pub fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        // SAFETY: it takes any number, and returns a string that it keeps.
        Some(number) => unsafe { CStr::from_ptr(sys::flowfd_strerror(number.wrapping_neg())) }
            .to_string_lossy()
            .into_owned(),
        None => error.to_string(),
    }
}

struct Counter(sys::flowfd_counter);

// SAFETY: any number of threads may call the library; it does not change the structure.
unsafe impl Send for Counter {}
// SAFETY: likewise.
unsafe impl Sync for Counter {}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more.
        unsafe { sys::flowfd_counter_close(&mut self.0) }
    }
}

impl Counter {
    fn flow(&self) -> io::Result<sys::flowfd_flow> {
        let mut flow = sys::flowfd_flow::default();
        // SAFETY: the counter is open.
        check(unsafe {
            sys::flowfd_counter_get_flow(&self.0, &mut flow, size_of::<sys::flowfd_flow>())
        })?;
        Ok(flow)
    }
}

/// Whether it happened, as an `Option`: it has not at once, or not for so long.
fn happened(result: c_int) -> io::Result<Option<()>> {
    match check(result) {
        Ok(_) => Ok(Some(())),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

const EINTR: c_int = -4;

/// Repeats a call that a signal interrupts.
fn uninterrupted(mut call: impl FnMut() -> c_int) -> c_int {
    loop {
        let result = call();
        if result != EINTR {
            return result;
        }
    }
}

/// The same with what is left of the time in ns, which is never 0: that is for ever.
fn within(timeout: Duration, mut call: impl FnMut(u64) -> c_int) -> c_int {
    let begin = Instant::now();
    uninterrupted(|| {
        let left = timeout.saturating_sub(begin.elapsed()).as_nanos().max(1);
        call(u64::try_from(left).unwrap_or(u64::MAX))
    })
}

/// The end of a counter that adds.
#[derive(Clone)]
pub struct Sender {
    counter: Arc<Counter>,
}

impl Sender {
    /// Adds to the count; waits for room.
    ///
    /// EPERM says that the value was added, but nobody could be told. After any other error
    /// nothing was added, also after EACCES, which is [`io::ErrorKind::PermissionDenied`] as
    /// well: so compare [`io::Error::raw_os_error`]. That holds for all adds.
    pub fn add(&self, value: u64) -> io::Result<()> {
        // SAFETY: the counter is open.
        check(uninterrupted(|| unsafe { sys::flowfd_add(&self.counter.0, value) })).map(drop)
    }

    /// Adds if there is room; says whether there was. Errors are those of [`add`](Self::add).
    pub fn try_add(&self, value: u64) -> io::Result<bool> {
        // SAFETY: the counter is open.
        let result = uninterrupted(|| unsafe {
            sys::flowfd_add_with(&self.counter.0, value, 0, sys::FLOWFD_NONBLOCK)
        });
        happened(result).map(|it| it.is_some())
    }

    /// Adds; waits so long for room; says whether there was any.
    pub fn add_timeout(&self, value: u64, timeout: Duration) -> io::Result<bool> {
        if timeout.is_zero() {
            return self.try_add(value);
        }
        // SAFETY: the counter is open.
        let result = within(timeout, |ns| unsafe {
            sys::flowfd_add_with(&self.counter.0, value, ns, 0)
        });
        happened(result).map(|it| it.is_some())
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("fd", &self.counter.0.fd).finish()
    }
}

/// The end of a counter that takes. One thread at a time has it; it can be sent to another.
///
/// Before its descriptor is polled, [`try_take`](Self::try_take) must have found nothing, as
/// with an edge-triggered poll, but with [`Options::one_consumer`] `(false)`. What waits here
/// sees to that itself.
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<flowfd::Receiver>();
/// ```
pub struct Receiver {
    counter: Arc<Counter>,
    one: PhantomData<Cell<()>>,
}

impl Receiver {
    /// Takes the count, which is 0 then; waits until there is one.
    pub fn take(&self) -> io::Result<u64> {
        // What waits must have found nothing before.
        if let Some(value) = self.try_take()? {
            return Ok(value);
        }
        let mut value = 0;
        // SAFETY: the counter is open.
        check(uninterrupted(|| unsafe { sys::flowfd_take(&self.counter.0, &mut value) }))?;
        Ok(value)
    }

    /// Takes the count, if there is one.
    pub fn try_take(&self) -> io::Result<Option<u64>> {
        let mut value = 0;
        // SAFETY: the counter is open.
        let result =
            uninterrupted(|| unsafe { sys::flowfd_try_take(&self.counter.0, &mut value) });
        Ok(happened(result)?.map(|()| value))
    }

    /// Takes the count; waits so long until there is one.
    pub fn take_timeout(&self, timeout: Duration) -> io::Result<Option<u64>> {
        let now = self.try_take()?;
        if now.is_some() || timeout.is_zero() {
            return Ok(now);
        }
        let mut value = 0;
        // SAFETY: the counter is open.
        let result = within(timeout, |ns| unsafe {
            sys::flowfd_take_with(&self.counter.0, &mut value, ns, 0)
        });
        Ok(happened(result)?.map(|()| value))
    }

    /// The count now, which others may change meanwhile.
    pub fn count(&self) -> io::Result<u64> {
        self.counter.flow().map(|flow| flow.count)
    }

    /// What [`Overflow::Saturate`] and [`Overflow::Drop`] have lost.
    pub fn lost(&self) -> io::Result<u64> {
        self.counter.flow().map(|flow| flow.lost)
    }

    /// Whether adds and takes are in memory.
    pub fn is_mapped(&self) -> bool {
        // SAFETY: the counter is open.
        unsafe { sys::flowfd_counter_is_mapped(&self.counter.0) != 0 }
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open as long as the counter.
        unsafe { BorrowedFd::borrow_raw(self.counter.0.fd) }
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.counter.0.fd
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("fd", &self.counter.0.fd).finish()
    }
}
