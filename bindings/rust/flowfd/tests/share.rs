// SPDX-License-Identifier: GPL-2.0-only
//! Processes that have nothing in common but descriptors, or a key.

use flowfd::{Key, Options};
use std::os::unix::io::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, fs::File, io, path::Path};

const MINUTE: Duration = Duration::from_secs(60);

extern "C" {
    fn fcntl(fd: i32, command: i32, ...) -> i32;
}

const F_SETFD: i32 = 2;

fn backend() -> String {
    env::var("FLOWFD_BACKEND").expect("FLOWFD_BACKEND is module or fallback")
}

/// What another process does: takes 6, and adds 5.
#[test]
fn role() {
    let (sender, receiver) = if let Ok(list) = env::var("FLOWFD_TEST_FDS") {
        let fds = list.split(',').map(|fd| fd.parse().unwrap());
        flowfd::from_descriptors(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })).unwrap()
    } else if let Ok(text) = env::var("FLOWFD_TEST_KEY") {
        let mut bytes = [0; 24];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
        }
        flowfd::open_shared(&Key::from_bytes(bytes)).unwrap()
    } else {
        return;
    };
    assert_eq!(receiver.take_timeout(MINUTE).unwrap(), Some(6));
    sender.add(5).unwrap();
}

fn process() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "role"]);
    command
}

fn ends_well(mut child: Child) {
    assert!(child.wait().unwrap().success());
}

#[test]
fn descriptors() {
    let (sender, receiver) = Options::new().open().unwrap();
    let fds: Vec<i32> =
        sender.descriptors().unwrap().iter().map(|fd| fd.as_raw_fd()).collect();
    let list: Vec<String> = fds.iter().map(|fd| fd.to_string()).collect();
    let mut command = process();
    command.env("FLOWFD_TEST_FDS", list.join(","));
    // SAFETY: fcntl(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(move || {
            for &fd in &fds {
                if fcntl(fd, F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        })
    };
    let child = command.spawn().unwrap();
    sender.add(6).unwrap();
    ends_well(child);
    assert_eq!(receiver.try_take().unwrap(), Some(5));
}

#[test]
fn numbers_of_errors() {
    for number in [i32::MIN, -1, 0, 22, i32::MAX] {
        assert!(!flowfd::describe(&io::Error::from_raw_os_error(number)).is_empty());
    }
}

#[test]
fn wrong_descriptors() {
    let null = || OwnedFd::from(File::open("/dev/null").unwrap());
    let number = |fds| flowfd::from_descriptors(fds).unwrap_err().raw_os_error();
    assert_eq!(number(vec![]), Some(22));
    assert_eq!(number(vec![null(), null(), null()]), Some(22));
    assert_eq!(number(vec![null()]), Some(25));
    assert_eq!(number(vec![null(), null()]), Some(25));
}

#[test]
fn key() {
    let (sender, receiver) = Options::new().open().unwrap();
    if backend() == "fallback" {
        let error = sender.share().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(25));
        assert!(flowfd::describe(&error).contains("flowfd module"));
        if !Path::new("/dev/flowfd").exists() {
            let error = flowfd::open_shared(&Key::from_bytes([0; 24])).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(19));
            assert!(flowfd::describe(&error).contains("modprobe"));
        }
        return;
    }
    let key = receiver.share().unwrap();
    assert_eq!(sender.share().unwrap(), key);
    assert_eq!(format!("{key:?}"), "Key(..)");
    let text: String = key.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let child = process().env("FLOWFD_TEST_KEY", text).spawn().unwrap();
    sender.add(6).unwrap();
    ends_well(child);
    assert_eq!(receiver.try_take().unwrap(), Some(5));
    let mut wrong = key.to_bytes();
    wrong[23] ^= 1;
    let kind = |key| flowfd::open_shared(&key).unwrap_err().kind();
    assert_eq!(kind(Key::from_bytes(wrong)), io::ErrorKind::NotFound);
    drop((sender, receiver));
    assert_eq!(kind(key), io::ErrorKind::NotFound);
}
