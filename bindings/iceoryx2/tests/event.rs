// SPDX-License-Identifier: GPL-2.0-only
//! iceoryx2's own tests of events, on counters of flowfd.

extern crate iceoryx2_bb_loggers;

use flowfd_iceoryx2::FlowfdShmCountingBitSet;
use iceoryx2_bb_lock_free::mpmc::counting_bit_set::RelocatableCountingBitSet;

iceoryx2_bb_testing::instantiate_conformance_tests!(
    iceoryx2_cal_conformance_tests::event_trait,
    RelocatableCountingBitSet,
    FlowfdShmCountingBitSet
);

iceoryx2_bb_testing::test_harness!();
