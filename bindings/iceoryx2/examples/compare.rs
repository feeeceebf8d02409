// SPDX-License-Identifier: GPL-2.0-only
//! compare [check]: what a notification costs while the listener is awake, and what takes it,
//! with the socket of iceoryx2 and with flowfd: of the triggers alone, and of whole
//! events, which also count what was notified. With an argument it fails unless the trigger
//! costs a tenth. Then nobody looks for a million notifications: none is refused.

extern crate iceoryx2_bb_loggers;

use std::env;
use std::mem::MaybeUninit;
use std::process;
use std::time::Instant;

use flowfd_iceoryx2::{FlowfdShmCountingBitSet, Handle, Mgmt, Waiter};
use iceoryx2_bb_container::semantic_string::SemanticString;
use iceoryx2_bb_elementary_traits::zero_copy_send::ZeroCopySend;
use iceoryx2_bb_lock_free::mpmc::counting_bit_set::RelocatableCountingBitSet as Bits;
use iceoryx2_bb_system_types::file_name::FileName;
use iceoryx2_bb_system_types::path::Path;
use iceoryx2_cal::dynamic_storage::posix_shared_memory::Storage;
use iceoryx2_cal::dynamic_storage::DynamicStorage;
use iceoryx2_cal::event::trigger::unix_datagram_socket::{UnixDatagramHandle, UnixDatagramWaiter};
use iceoryx2_cal::event::trigger::{Configuration, HandlerInterface, State, WaiterInterface};
use iceoryx2_cal::event::{
    Event, EventId, Listener, ListenerBuilder, NamedConceptBuilder, Notifier, NotifierBuilder,
    UnixDatagramShmCountingBitSet,
};

const ROUNDS: u32 = 20_000;
const SERIES: usize = 7;
const MANY: u32 = 1_000_000;

type Socket = Storage<State<Bits, ()>>;
type Flowfd = Storage<State<Bits, Mgmt>>;

fn file_name(what: &str) -> FileName {
    FileName::new(format!("flowfd_{what}_{}", process::id()).as_bytes()).unwrap()
}

/// Nanoseconds of what is done in each round.
fn time(mut round: impl FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        round();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

fn ends<M, S, H, W>(what: &str) -> (H, W)
where
    M: ZeroCopySend + Send + Sync + std::fmt::Debug,
    S: DynamicStorage<State<Bits, M>>,
    H: HandlerInterface<Bits, M, S>,
    W: WaiterInterface<Bits, M, S>,
{
    let config = Configuration {
        suffix: FileName::new(b".event").unwrap(),
        prefix: FileName::new(b"compare_").unwrap(),
        path_hint: Path::new(b"/tmp").unwrap(),
    };
    let name = file_name(what);
    let mut mgmt = MaybeUninit::uninit();
    let waiter = W::create(&name, &config, &mut mgmt).unwrap();
    // SAFETY: it has been filled in.
    let handle = H::open(&name, &config, unsafe { mgmt.assume_init_ref() }).unwrap();
    (handle, waiter)
}

fn trigger<M, S, H, W>(what: &str) -> impl FnMut() -> f64
where
    M: ZeroCopySend + Send + Sync + std::fmt::Debug,
    S: DynamicStorage<State<Bits, M>>,
    H: HandlerInterface<Bits, M, S>,
    W: WaiterInterface<Bits, M, S>,
{
    let (handle, waiter): (H, W) = ends(what);
    move || {
        time(|| {
            handle.notify().unwrap();
            waiter.empty_buffer().unwrap();
        })
    }
}

fn event<Sut: Event<Bits>>(what: &str) -> impl FnMut() -> f64 {
    let name = file_name(what);
    let listener = Sut::ListenerBuilder::new(&name).create().unwrap();
    let notifier = Sut::NotifierBuilder::new(&name).open().unwrap();
    move || {
        time(|| {
            notifier.notify(EventId::new(1)).unwrap();
            assert_eq!(listener.try_wait(|_| {}).unwrap(), 1);
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// In alternating series. Returns the ratio of their medians.
fn compare(
    what: &str,
    mut socket: impl FnMut() -> f64,
    mut flowfd: impl FnMut() -> f64,
) -> f64 {
    let (mut sockets, mut flowfds) = (Vec::new(), Vec::new());
    for _ in 0..SERIES {
        sockets.push(socket());
        flowfds.push(flowfd());
    }
    let (socket, flowfd) = (median(sockets), median(flowfds));
    let ratio = flowfd / socket;
    println!("{what}: socket {socket:.0} ns, flowfd {flowfd:.0} ns, {ratio:.3}");
    ratio
}

/// Nobody looks. The event asks its trigger only once, so this asks the trigger itself.
fn notify_many() {
    let (handle, waiter): (Handle<Bits, Flowfd>, Waiter<Bits, Flowfd>) = ends("many");
    for _ in 0..MANY {
        handle.notify().expect("not refused");
    }
    waiter.blocking_wait().unwrap();
    println!("{MANY} notifications that nobody looked for: none was refused");
}

fn main() {
    let ratio = compare(
        "trigger",
        trigger::<(), Socket, UnixDatagramHandle<Bits, Socket>, UnixDatagramWaiter<Bits, Socket>>(
            "socket",
        ),
        trigger::<Mgmt, Flowfd, Handle<Bits, Flowfd>, Waiter<Bits, Flowfd>>("flowfd"),
    );
    compare(
        "event",
        event::<UnixDatagramShmCountingBitSet>("sockets"),
        event::<FlowfdShmCountingBitSet>("flowfds"),
    );
    notify_many();
    if env::args().len() > 1 && ratio > 0.1 {
        process::exit(1);
    }
}
