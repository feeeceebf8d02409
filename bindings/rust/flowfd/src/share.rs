// SPDX-License-Identifier: MIT
//! Counters of other processes: what is sent, and keys.

use std::fmt;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::raw::c_uint;
use std::os::unix::io::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use flowfd_sys as sys;

use crate::{check, ends_of, uninterrupted, Counter, Receiver, Sender};

const SIZE: usize = mem::size_of::<sys::flowfd_key>();

/// Opens a counter of the module in another process. It can lie, as bytes, in memory that
/// processes share, or in a file, and must be kept as a password is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; SIZE]);

impl Key {
    /// A key from its bytes.
    pub const fn from_bytes(bytes: [u8; SIZE]) -> Self {
        Key(bytes)
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; SIZE] {
        self.0
    }
}

/// Does not show the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Counter {
    fn descriptors(&self) -> io::Result<Vec<BorrowedFd<'_>>> {
        let mut fds = [-1; sys::FLOWFD_EXPORT_MAX];
        // SAFETY: the counter is open, and there is room for all.
        let count = check(unsafe { sys::flowfd_counter_export(&self.0, fds.as_mut_ptr()) })?;
        let fds = fds.iter().take(count as usize);
        // SAFETY: they are open as long as the counter.
        Ok(fds.map(|&fd| unsafe { BorrowedFd::borrow_raw(fd) }).collect())
    }

    fn share(&self) -> io::Result<Key> {
        let mut key = MaybeUninit::uninit();
        // SAFETY: it fills in what it is given, if it succeeds.
        check(uninterrupted(|| unsafe { sys::flowfd_share(self.0.fd, key.as_mut_ptr()) }))?;
        // SAFETY: it has; a key has no padding.
        Ok(Key(unsafe { mem::transmute::<sys::flowfd_key, [u8; SIZE]>(key.assume_init()) }))
    }
}

impl Sender {
    /// What makes the counter, for another process: to be sent in this order by SCM_RIGHTS of
    /// unix(7), or inherited, and given to [`from_descriptors`] there. Whoever has it can add,
    /// take, and disturb those who use the counter.
    ///
    /// A semaphore without the module has none.
    pub fn descriptors(&self) -> io::Result<Vec<BorrowedFd<'_>>> {
        self.counter.descriptors()
    }

    /// The key of the counter, for [`open_shared`], the same each time. Without the module
    /// there are none (ENOTTY).
    pub fn share(&self) -> io::Result<Key> {
        self.counter.share()
    }
}

impl Receiver {
    /// As [`Sender::descriptors`].
    pub fn descriptors(&self) -> io::Result<Vec<BorrowedFd<'_>>> {
        self.counter.descriptors()
    }

    /// As [`Sender::share`].
    pub fn share(&self) -> io::Result<Key> {
        self.counter.share()
    }
}

/// The counter of another process, from its descriptors. They are closed if they are not what
/// they must be, which is an error. What receives them by recvmsg(2) does so with
/// MSG_CMSG_CLOEXEC: otherwise programs that are started meanwhile get them, too.
///
/// One process takes, and drops the sender or not; another adds, and drops the receiver. Where
/// several take, the counter must have been made with
/// [`Options::one_consumer`](crate::Options::one_consumer)`(false)`.
pub fn from_descriptors(
    fds: impl IntoIterator<Item = OwnedFd>,
) -> io::Result<(Sender, Receiver)> {
    let fds: Vec<OwnedFd> = fds.into_iter().collect();
    let numbers: Vec<_> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
    let count = c_uint::try_from(numbers.len()).unwrap_or(c_uint::MAX);
    let mut made = MaybeUninit::uninit();
    // SAFETY: it fills in what it is given, if it succeeds.
    check(unsafe { sys::flowfd_counter_import(made.as_mut_ptr(), numbers.as_ptr(), count) })?;
    // They are the counter's now.
    for fd in fds {
        let _ = fd.into_raw_fd();
    }
    // SAFETY: it has.
    Ok(ends_of(Counter(unsafe { made.assume_init() })))
}

/// The counter that has a key. There may be none, or none in this user namespace
/// ([`io::ErrorKind::NotFound`]); or no module (ENODEV). See [`from_descriptors`].
pub fn open_shared(key: &Key) -> io::Result<(Sender, Receiver)> {
    // SAFETY: each value is a key, which may be wrong.
    let key = unsafe { mem::transmute::<[u8; SIZE], sys::flowfd_key>(key.0) };
    // SAFETY: it reads the key.
    let fd = check(unsafe { sys::flowfd_open_shared(&key, 0) })?;
    // SAFETY: it is new, and nobody else's.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut made = MaybeUninit::uninit();
    let roles = sys::FLOWFD_PRODUCER | sys::FLOWFD_CONSUMER;
    // SAFETY: it fills in what it is given, if it succeeds.
    check(unsafe { sys::flowfd_counter_map(made.as_mut_ptr(), fd.as_raw_fd(), roles) })?;
    // It is the counter's now.
    let _ = fd.into_raw_fd();
    // SAFETY: it has.
    Ok(ends_of(Counter(unsafe { made.assume_init() })))
}
