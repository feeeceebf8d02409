// SPDX-License-Identifier: GPL-2.0-only
//! Does what the table of cases says, and compares the results.

use flowfd::{Options, Overflow, Receiver, Sender};
use std::os::{raw::c_int, raw::c_short, unix::io::AsRawFd};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fs, io};

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

extern "C" {
    fn poll(fds: *mut PollFd, count: u64, timeout: c_int) -> c_int;
}

fn poll_says(receiver: &Receiver, events: c_short) -> String {
    let fd = receiver.as_raw_fd();
    let mut polled = PollFd { fd, events, revents: 0 };
    let ready = unsafe { poll(&mut polled, 1, 0) } == 1 && polled.revents & events != 0;
    yes(ready)
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.into()
}

fn added(did: bool) -> String {
    if did { "ok" } else { "nothing" }.into()
}

fn taken(value: Option<u64>) -> String {
    value.map_or("nothing".into(), |v| v.to_string())
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

fn time(word: &str) -> Duration {
    Duration::from_millis(number(word))
}

fn name_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(11) => "EAGAIN".into(),
        Some(22) => "EINVAL".into(),
        Some(25) => "ENOTTY".into(),
        Some(95) => "EOPNOTSUPP".into(),
        _ => format!("{error}: {}", flowfd::describe(error)),
    }
}

fn added_by(other: (Sender, Receiver), value: u64) -> io::Result<String> {
    Ok(if other.0.try_add(value)? { "ok" } else { "EAGAIN" }.into())
}

/// The receiver is one thread's at a time, so a thread of the table borrows it.
fn run(sender: &Sender, receiver: &Mutex<Receiver>, step: &[&str]) -> io::Result<String> {
    Ok(match step[0] {
        "add" => sender.add(number(step[1])).map(|()| "ok".into())?,
        "try_add" => added(sender.try_add(number(step[1]))?),
        "add_by_descriptors" => {
            let fds: io::Result<Vec<_>> =
                sender.descriptors()?.iter().map(|fd| fd.try_clone_to_owned()).collect();
            added_by(flowfd::from_descriptors(fds?)?, number(step[1]))?
        }
        "add_by_key" => added_by(flowfd::open_shared(&sender.share()?)?, number(step[1]))?,
        "add_for" => added(sender.add_timeout(number(step[1]), time(step[2]))?),
        _ => {
            let receiver = receiver.lock().unwrap();
            match step[0] {
                "take" => receiver.take()?.to_string(),
                "try_take" => taken(receiver.try_take()?),
                "take_for" => taken(receiver.take_timeout(time(step[1]))?),
                "count" => receiver.count()?.to_string(),
                "lost" => receiver.lost()?.to_string(),
                "readable" => poll_says(&receiver, 1),
                "writable" => poll_says(&receiver, 4),
                "mapped" => yes(receiver.is_mapped()),
                other => panic!("unknown operation {other}"),
            }
        }
    })
}

fn outcome(sender: &Sender, receiver: &Mutex<Receiver>, step: &[&str]) -> String {
    run(sender, receiver, step).unwrap_or_else(|error| name_of(&error))
}

fn options_of(words: &[&str]) -> Options {
    let mut options = Options::new();
    options.one_consumer(false);
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "initial" => options.initial(number(value)),
            "maximum" => options.maximum(number(value)),
            "semaphore" => options.semaphore(true),
            "nonblock" => options.nonblocking(true),
            "no-poll" => options.no_poll(true),
            "one-consumer" => options.one_consumer(true),
            "overflow" => options.overflow(match value {
                "wait" => Overflow::Wait,
                "fail" => Overflow::Fail,
                "saturate" => Overflow::Saturate,
                "drop" => Overflow::Drop,
                other => panic!("unknown policy {other}"),
            }),
            "bucket" => {
                let (capacity, rate) = value.split_once(',').unwrap();
                options.bucket(capacity.parse().unwrap(), rate.parse().unwrap())
            }
            other => panic!("unknown setting {other}"),
        };
    }
    options
}

type Opened = (Sender, Arc<Mutex<Receiver>>);

#[test]
fn table() {
    let backend = env::var("FLOWFD_BACKEND").expect("FLOWFD_BACKEND is module or fallback");
    let path = env::var("FLOWFD_CASES").expect("FLOWFD_CASES is the table");
    let table = fs::read_to_string(path).unwrap();
    let mut opened: Option<Opened> = None;
    let mut later: Option<JoinHandle<String>> = None;
    let mut name = String::new();
    let mut checks = 0;

    for text in table.lines() {
        let (line, only) = text.split_once(" @").unwrap_or((text, ""));
        let (step, wanted) = line.split_once(" = ").unwrap_or((line, "ok"));
        let step: Vec<&str> = step.split_whitespace().collect();
        if step.is_empty() || step[0].starts_with('#') || (!only.is_empty() && only != backend)
        {
            continue;
        }
        let got = match step[0] {
            "case" => {
                name = step[1].to_string();
                match options_of(&step[2..]).open() {
                    Ok((sender, receiver)) => {
                        opened = Some((sender, Arc::new(Mutex::new(receiver))));
                        "ok".into()
                    }
                    Err(error) => name_of(&error),
                }
            }
            "later" => {
                let (sender, receiver) = opened.clone().unwrap();
                let words: Vec<String> = step[1..].iter().map(|w| w.to_string()).collect();
                later = Some(thread::spawn(move || {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    thread::sleep(time(words[0]));
                    outcome(&sender, &receiver, &words[1..])
                }));
                continue;
            }
            "join" => later.take().unwrap().join().unwrap(),
            _ => {
                let (sender, receiver) = opened.as_ref().unwrap();
                outcome(sender, receiver, &step)
            }
        };
        assert_eq!(got, wanted.trim(), "{name}: {text}");
        checks += 1;
    }
    assert!(checks > 100);
}
