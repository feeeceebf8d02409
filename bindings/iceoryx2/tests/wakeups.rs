// SPDX-License-Identifier: GPL-2.0-only
//! No wakeup is lost: in turn, of several notifiers to a listener that polls, and if notifiers
//! and listeners are killed. FLOWFD_ROUNDS says how many.

extern crate iceoryx2_bb_loggers;

use std::env;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use flowfd_iceoryx2::FlowfdShmCountingBitSet as Sut;
use iceoryx2_bb_container::semantic_string::SemanticString;
use iceoryx2_bb_lock_free::mpmc::counting_bit_set::RelocatableCountingBitSet as Bits;
use iceoryx2_bb_posix::file_descriptor::FileDescriptorBased;
use iceoryx2_bb_system_types::file_name::FileName;
use iceoryx2_cal::event::{
    Event, EventId, Listener, ListenerBuilder, NamedConceptBuilder, NamedConceptMgmt, Notifier,
    NotifierBuilder,
};

type TheListener = <Sut as Event<Bits>>::Listener;
type TheNotifier = <Sut as Event<Bits>>::Notifier;

const ID: EventId = EventId::new(3);
const PATIENCE: Duration = Duration::from_secs(30);

fn listen(name: &FileName) -> TheListener {
    <Sut as Event<Bits>>::ListenerBuilder::new(name)
        .create()
        .expect("a listener")
}

fn notifier(name: &FileName) -> TheNotifier {
    <Sut as Event<Bits>>::NotifierBuilder::new(name)
        .timeout(PATIENCE)
        .open()
        .expect("a notifier")
}

/// Another process of this program.
fn start(role: &str, name: &FileName) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([role, &name.to_string()])
        .spawn()
        .unwrap()
}

fn notify_for_ever(name: &FileName) {
    let notifier = notifier(name);
    loop {
        notifier.notify(ID).expect("a notification");
    }
}

fn listen_for_ever(name: &FileName) {
    let listener = listen(name);
    loop {
        listener.blocking_wait(|_| {}).expect("a wait");
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The notifier of this process wakes the listener, whatever another one left.
fn check_listener(listener: &TheListener, notifier: &TheNotifier) {
    while listener.try_wait(|_| {}).unwrap() > 0 {}
    thread::scope(|scope| {
        let begin = Instant::now();
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(2));
            notifier.notify(ID).expect("a notification");
        });
        // What was killed may have woken it once for nothing.
        while listener.timed_wait(|_| {}, PATIENCE).unwrap() == 0 {
            assert!(begin.elapsed() < PATIENCE, "the listener is stuck");
        }
    });
}

fn kill_notifiers(name: &FileName, rounds: u32) {
    let listener = listen(name);
    let own = notifier(name);
    for round in 0..rounds {
        let child = start("notify", name);
        // Until it notifies.
        while listener.timed_wait(|_| {}, PATIENCE).unwrap() == 0 {}
        thread::sleep(Duration::from_micros(u64::from(round % 50) * 7));
        kill(child);
        check_listener(&listener, &own);
    }
}

fn wait_for_listener(name: &FileName) {
    let begin = Instant::now();
    while !Sut::does_exist_cfg(name, &Default::default()).unwrap() {
        assert!(begin.elapsed() < PATIENCE, "there is no listener");
        thread::sleep(Duration::from_millis(1));
    }
}

fn kill_listeners(name: &FileName, rounds: u32) {
    for round in 0..rounds {
        let child = start("listen", name);
        wait_for_listener(name);
        let notifier = notifier(name);
        let begin = Instant::now();
        for _ in 0..round % 50 {
            notifier.notify(ID).expect("a notification");
        }
        kill(child);
        for _ in 0..1000 {
            notifier.notify(ID).expect("a notification to nobody");
        }
        assert!(begin.elapsed() < PATIENCE, "a notifier is stuck");
        // SAFETY: its process has ended.
        assert!(unsafe { Sut::remove_cfg(name, &Default::default()) }.unwrap());
    }
    let listener = listen(name);
    check_listener(&listener, &notifier(name));
}

/// Two threads that wake each other in turn. iceoryx2's own test of this has a limit of 10 s,
/// which a busy machine exceeds.
fn wake_in_turn(there: &FileName, back: &FileName) {
    const TURNS: u32 = 10_000;
    let (there_listener, back_listener) = (listen(there), listen(back));
    let (there_notifier, back_notifier) = (notifier(there), notifier(back));
    let wait = |listener: &TheListener| {
        let begin = Instant::now();
        while listener.timed_wait(|_| {}, PATIENCE).unwrap() == 0 {
            assert!(begin.elapsed() < PATIENCE, "a wakeup is lost");
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..TURNS {
                there_notifier.notify(ID).unwrap();
                wait(&back_listener);
            }
        });
        for _ in 0..TURNS {
            wait(&there_listener);
            back_notifier.notify(ID).unwrap();
        }
    });
}

/// Returns when the listener's descriptor is readable.
fn poll(listener: &TheListener) {
    let mut poll = libc::pollfd {
        // SAFETY: it is used while the listener is there.
        fd: unsafe { listener.file_descriptor().native_handle() },
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: it lives longer than the call.
    let ready = unsafe { libc::poll(&mut poll, 1, PATIENCE.as_millis() as i32) };
    assert_eq!(ready, 1, "a wakeup is lost");
}

fn look_once(listener: &TheListener) -> u64 {
    poll(listener);
    listener.try_wait(|_| {}).unwrap()
}

fn look_until_nothing(listener: &TheListener) -> u64 {
    let mut sum = 0;
    poll(listener);
    loop {
        match listener.try_wait(|_| {}).unwrap() {
            0 => return sum,
            found => sum += found,
        }
    }
}

/// A time that passes, and a wait that ends only if a wakeup comes.
fn wait_twice(listener: &TheListener) -> u64 {
    let briefly = Duration::from_micros(10);
    let found = listener.timed_wait(|_| {}, briefly).unwrap();
    found + listener.timed_wait(|_| {}, PATIENCE).unwrap()
}

/// Three notifiers, and a listener that looks in some way.
fn wake_one_of_three(name: &FileName, look: fn(&TheListener) -> u64) {
    const NOTIFICATIONS: u64 = 20_000;
    const NOTIFIERS: u64 = 3;
    let listener = listen(name);
    let mut found = 0;
    thread::scope(|scope| {
        for _ in 0..NOTIFIERS {
            scope.spawn(|| {
                let notifier = notifier(name);
                for turn in 0..NOTIFICATIONS {
                    notifier.notify(ID).unwrap();
                    if turn % 8 == 0 {
                        thread::sleep(Duration::from_micros(turn % 50));
                    }
                }
            });
        }
        let mut begin = Instant::now();
        while found < NOTIFIERS * NOTIFICATIONS {
            let more = look(&listener);
            found += more;
            if more > 0 {
                begin = Instant::now();
            }
            assert!(begin.elapsed() < PATIENCE, "lost after {found} notifications");
        }
    });
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let of = |text: &str| FileName::new(text.as_bytes()).unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("notify") => return notify_for_ever(&of(&arguments[2])),
        Some("listen") => return listen_for_ever(&of(&arguments[2])),
        _ => (),
    }
    let rounds = env::var("FLOWFD_ROUNDS").map_or(100, |text| text.parse().unwrap());
    let name = |what| of(&format!("flowfd_{what}_{}", std::process::id()));
    wake_in_turn(&name("there"), &name("back"));
    println!("two threads woke each other in turn");
    for look in [look_once, look_until_nothing, wait_twice] {
        wake_one_of_three(&name("three"), look);
    }
    println!("a listener found in three ways what three notifiers said");
    kill_notifiers(&name("notifiers"), rounds);
    println!("{rounds} notifiers were killed, and the listener went on");
    kill_listeners(&name("listeners"), rounds);
    println!("{rounds} listeners were killed, and their notifiers went on");
}
