// SPDX-License-Identifier: MIT
//! Declarations of libflowfd for counters, written by hand; the crate `flowfd` is what to use.
//! The headers of C document them. A test compares sizes, offsets and constants with C.

use std::os::raw::{c_char, c_int, c_uint};

pub const FLOWFD_SEMAPHORE: u32 = 1 << 0;
pub const FLOWFD_NONBLOCK: u32 = 1 << 1;

pub const FLOWFD_FALLBACK: c_uint = 1 << 0;
pub const FLOWFD_OPTIONAL_BUCKET: c_uint = 1 << 1;
pub const FLOWFD_ONE_CONSUMER: c_uint = 1 << 2;
pub const FLOWFD_NO_POLL: c_uint = 1 << 3;

pub const FLOWFD_PRODUCER: c_uint = 1 << 0;
pub const FLOWFD_CONSUMER: c_uint = 1 << 1;

pub const FLOWFD_EXPORT_MAX: usize = 2;

pub const FLOWFD_OVERFLOW_FAIL: u32 = 1;
pub const FLOWFD_OVERFLOW_SATURATE: u32 = 2;
pub const FLOWFD_OVERFLOW_DROP: u32 = 3;
pub const FLOWFD_SET_OVERFLOW: u32 = 1 << 5;

/// A counter in this process. All but `fd` is the library's.
#[repr(C)]
pub struct flowfd_counter {
    pub fd: c_int,
    roles: u32,
    pointers: [*const u8; 6],
    words: [u32; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct eventfd_qos {
    pub token_capacity: u32,
    pub token_rate: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct flowfd_create_counter {
    pub initial: u64,
    pub maximum: u64,
    pub flags: u32,
    pub reserved: u32,
    pub qos: eventfd_qos,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct flowfd_flow {
    pub maximum: u64,
    pub read_mark: u64,
    pub write_mark: u64,
    pub max_delay: u64,
    pub qos: eventfd_qos,
    pub overflow: u32,
    pub flags: u32,
    pub count: u64,
    pub lost: u64,
    pub set: u32,
    pub reserved: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct flowfd_key {
    pub id: u64,
    pub secret: [u8; 16],
}

extern "C" {
    pub fn flowfd_counter_open(
        c: *mut flowfd_counter,
        settings: *const flowfd_create_counter,
        size: usize,
        options: c_uint,
    ) -> c_int;
    pub fn flowfd_counter_close(c: *mut flowfd_counter);
    pub fn flowfd_counter_export(c: *const flowfd_counter, fds: *mut c_int) -> c_int;
    pub fn flowfd_counter_import(
        c: *mut flowfd_counter,
        fds: *const c_int,
        count: c_uint,
    ) -> c_int;
    pub fn flowfd_counter_map(c: *mut flowfd_counter, fd: c_int, roles: c_uint) -> c_int;
    pub fn flowfd_share(fd: c_int, key: *mut flowfd_key) -> c_int;
    pub fn flowfd_open_shared(key: *const flowfd_key, flags: c_uint) -> c_int;
    pub fn flowfd_counter_set_flow(
        c: *const flowfd_counter,
        flow: *const flowfd_flow,
        size: usize,
    ) -> c_int;
    pub fn flowfd_counter_get_flow(
        c: *const flowfd_counter,
        flow: *mut flowfd_flow,
        size: usize,
    ) -> c_int;
    pub fn flowfd_counter_is_mapped(c: *const flowfd_counter) -> c_int;
    pub fn flowfd_add(c: *const flowfd_counter, value: u64) -> c_int;
    pub fn flowfd_take(c: *const flowfd_counter, value: *mut u64) -> c_int;
    pub fn flowfd_try_take(c: *const flowfd_counter, value: *mut u64) -> c_int;
    pub fn flowfd_add_with(
        c: *const flowfd_counter,
        value: u64,
        timeout: u64,
        flags: c_uint,
    ) -> c_int;
    pub fn flowfd_take_with(
        c: *const flowfd_counter,
        value: *mut u64,
        timeout: u64,
        flags: c_uint,
    ) -> c_int;
    pub fn flowfd_strerror(error: c_int) -> *const c_char;
}
