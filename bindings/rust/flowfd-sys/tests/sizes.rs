// SPDX-License-Identifier: GPL-2.0-only
//! The declarations are as those of C.

use flowfd_sys::*;
use std::mem::{align_of, size_of, MaybeUninit};
use std::ptr::addr_of;

// That of the standard library is newer than the rest of these crates needs.
macro_rules! offset_of {
    ($kind:ty, $field:ident) => {{
        let it = MaybeUninit::<$kind>::uninit();
        let at = it.as_ptr();
        unsafe { addr_of!((*at).$field) as usize - at as usize }
    }};
}

extern "C" {
    static flowfd_sys_sizes: [usize; 30];
}

#[test]
fn as_in_c() {
    let rust = [
        size_of::<flowfd_counter>(),
        align_of::<flowfd_counter>(),
        size_of::<flowfd_create_counter>(),
        align_of::<flowfd_create_counter>(),
        size_of::<flowfd_flow>(),
        align_of::<flowfd_flow>(),
        offset_of!(flowfd_counter, fd),
        offset_of!(flowfd_create_counter, maximum),
        offset_of!(flowfd_create_counter, flags),
        offset_of!(flowfd_create_counter, qos),
        offset_of!(flowfd_flow, overflow),
        offset_of!(flowfd_flow, count),
        offset_of!(flowfd_flow, lost),
        offset_of!(flowfd_flow, set),
        size_of::<flowfd_key>(),
        align_of::<flowfd_key>(),
        offset_of!(flowfd_key, secret),
        FLOWFD_SEMAPHORE as usize,
        FLOWFD_NONBLOCK as usize,
        FLOWFD_FALLBACK as usize,
        FLOWFD_OPTIONAL_BUCKET as usize,
        FLOWFD_ONE_CONSUMER as usize,
        FLOWFD_NO_POLL as usize,
        FLOWFD_PRODUCER as usize,
        FLOWFD_CONSUMER as usize,
        FLOWFD_EXPORT_MAX,
        FLOWFD_OVERFLOW_FAIL as usize,
        FLOWFD_OVERFLOW_SATURATE as usize,
        FLOWFD_OVERFLOW_DROP as usize,
        FLOWFD_SET_OVERFLOW as usize,
    ];
    assert_eq!(rust, unsafe { flowfd_sys_sizes });
}
