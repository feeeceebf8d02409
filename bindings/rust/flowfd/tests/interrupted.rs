// SPDX-License-Identifier: GPL-2.0-only
//! Calls that do not wait are repeated if a signal interrupts them.
#![cfg(target_arch = "x86_64")]

use flowfd::Options;
use std::arch::asm;
use std::os::raw::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

extern "C" {
    fn __errno_location() -> *mut c_int;
}

const WRITE: c_long = 1;
const PREADV2: c_long = 327;
const EINTR: c_long = 4;

/// The next write(2) or preadv2(2) to a counter is interrupted.
static ARMED: AtomicBool = AtomicBool::new(false);

/// In the place of that of the C library, which has as many arguments as the call needs.
#[no_mangle]
unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let mut result = -EINTR;
    let transfers = (number == WRITE || number == PREADV2) && a > 2;
    if !transfers || !ARMED.swap(false, Ordering::SeqCst) {
        asm!("syscall", inlateout("rax") number => result,
             in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
             lateout("rcx") _, lateout("r11") _);
    }
    if !(-4095..0).contains(&result) {
        return result;
    }
    *__errno_location() = -result as c_int;
    -1
}

#[no_mangle]
unsafe extern "C" fn write(fd: c_int, data: *const c_void, size: usize) -> isize {
    syscall(WRITE, fd.into(), data as c_long, size as c_long, 0, 0, 0) as isize
}

#[test]
fn repeated() {
    if std::env::var("FLOWFD_BACKEND").as_deref() == Ok("module") {
        return; // What is interrupted is an eventfd.
    }
    let (sender, receiver) =
        Options::new().semaphore(true).nonblocking(true).one_consumer(false).open().unwrap();
    ARMED.store(true, Ordering::SeqCst);
    assert!(sender.try_add(1).unwrap());
    assert!(!ARMED.swap(true, Ordering::SeqCst));
    assert_eq!(receiver.try_take().unwrap(), Some(1));
    assert!(!ARMED.load(Ordering::SeqCst));
    assert_eq!(receiver.try_take().unwrap(), None);
}
