// SPDX-License-Identifier: MIT
//! Events of iceoryx2 whose trigger is a mapped counter of flowfd.
//!
//! A notification is an add in memory, and a system call only if the listener sleeps or is
//! polled. The key of the counter lies in the shared memory of the event, so a notifier needs
//! neither a socket file nor a descriptor that was sent. Needs the module of flowfd.
//!
//! The idea of a trigger, and the traits, are those of the crate `iceoryx2-cal`.

use std::fmt::{self, Debug};
use std::io;
use std::marker::PhantomData;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_int;
use std::ptr::{self, NonNull};
use std::time::Duration;

use flowfd_sys as sys;
use iceoryx2_bb_derive_macros::ZeroCopySend;
use iceoryx2_bb_elementary_traits::testing::abandonable::Abandonable;
use iceoryx2_bb_elementary_traits::zero_copy_send::ZeroCopySend;
use iceoryx2_bb_lock_free::mpmc::counting_bit_set::RelocatableCountingBitSet;
use iceoryx2_bb_posix::file_descriptor::{FileDescriptor, FileDescriptorBased};
use iceoryx2_bb_posix::file_descriptor_set::SynchronousMultiplexing;
use iceoryx2_bb_system_types::file_name::FileName;
use iceoryx2_bb_system_types::path::Path;
use iceoryx2_cal::dynamic_storage::{posix_shared_memory, DynamicStorage};
use iceoryx2_cal::event::common::EventImpl;
use iceoryx2_cal::event::event_state::EventState;
use iceoryx2_cal::event::trigger::{Configuration, HandlerInterface, State, WaiterInterface};
use iceoryx2_cal::event::{
    ListenerCreateError, ListenerWaitError, NotifierNotifyError, NotifierOpenError,
};
use iceoryx2_cal::named_concept::{NamedConceptPathHintRemoveError, NamedConceptRemoveError};

const EPERM: c_int = -1;
const ENOENT: c_int = -2;
const EINTR: c_int = -4;
const EAGAIN: c_int = -11;
const EACCES: c_int = -13;

/// The key of the counter, in the memory of the event.
#[derive(Debug, ZeroCopySend)]
#[repr(C)]
pub struct Mgmt {
    id: u64,
    secret: [u8; 16],
}

struct Counter {
    raw: sys::flowfd_counter,
    fd: FileDescriptor,
}

// SAFETY: any number of threads may call the library; it does not change the structure.
unsafe impl Send for Counter {}
// SAFETY: likewise.
unsafe impl Sync for Counter {}

impl Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({})", self.raw.fd)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: nobody else has it any more.
        unsafe { sys::flowfd_counter_close(&mut self.raw) }
    }
}

impl Counter {
    fn of(raw: sys::flowfd_counter) -> Self {
        // SAFETY: it is open as long as the counter.
        let fd = unsafe { FileDescriptor::non_owning_new_unchecked(raw.fd) };
        Counter { raw, fd }
    }

    fn create() -> Result<Self, c_int> {
        let settings = sys::flowfd_create_counter::default();
        let size = size_of::<sys::flowfd_create_counter>();
        let mut made = MaybeUninit::uninit();
        // SAFETY: it fills in what it is given, if it succeeds.
        match unsafe { sys::flowfd_counter_open(made.as_mut_ptr(), &settings, size, 0) } {
            // SAFETY: it has.
            0 => Ok(Self::of(unsafe { made.assume_init() })),
            error => Err(error),
        }
    }

    fn open(key: &sys::flowfd_key) -> Result<Self, c_int> {
        let mut made = MaybeUninit::uninit();
        // SAFETY: it reads the key.
        let fd = unsafe { sys::flowfd_open_shared(key, 0) };
        if fd < 0 {
            return Err(fd);
        }
        // SAFETY: the descriptor is new, and the counter's if it succeeds.
        let result =
            unsafe { sys::flowfd_counter_map(made.as_mut_ptr(), fd, sys::FLOWFD_PRODUCER) };
        if result < 0 {
            // SAFETY: it is nobody's.
            drop(unsafe { FileDescriptor::new_unchecked(fd) });
            return Err(result);
        }
        // SAFETY: it has filled it in.
        let counter = Self::of(unsafe { made.assume_init() });
        // SAFETY: the counter is open. One that is not in memory is not of this crate.
        match unsafe { sys::flowfd_counter_is_mapped(&counter.raw) } {
            0 => Err(ENOENT),
            _ => Ok(counter),
        }
    }

    fn key(&self) -> Result<sys::flowfd_key, c_int> {
        let mut key = MaybeUninit::uninit();
        loop {
            // SAFETY: it fills in what it is given, if it succeeds.
            match unsafe { sys::flowfd_share(self.raw.fd, key.as_mut_ptr()) } {
                // SAFETY: it has.
                0 => return Ok(unsafe { key.assume_init() }),
                EINTR => (),
                error => return Err(error),
            }
        }
    }

    /// Waits until there is a count, and leaves it: `empty` takes it. After the time there is
    /// one, too: then whatever a notifier adds from now on is more than 1, and left.
    fn wait(&self, timeout: Option<Duration>) -> Wait {
        let mut poll = libc::pollfd {
            fd: self.raw.fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let time = timeout.map(|it| libc::timespec {
            tv_sec: it.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: it.subsec_nanos() as _,
        });
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: all live longer than the call.
        match unsafe { libc::ppoll(&mut poll, 1, time, ptr::null()) } {
            0 => return self.notify().map_err(|_| ListenerWaitError::InternalFailure),
            1.. => return Ok(()),
            _ => (),
        }
        match io::Error::last_os_error().kind() {
            io::ErrorKind::Interrupted => Err(ListenerWaitError::InterruptSignal),
            _ => Err(ListenerWaitError::InternalFailure),
        }
    }

    /// Takes all but what may belong to a notification that the event does not know yet: a
    /// notifier adds before it says so in the state of the event, and whoever finds that state
    /// adds nothing. What is left wakes the listener once more.
    fn empty(&self) -> Wait {
        let mut count = 0;
        // SAFETY: the counter is open.
        match unsafe { sys::flowfd_try_take(&self.raw, &mut count) } {
            0 if count > 1 => self.notify().map_err(|_| ListenerWaitError::InternalFailure),
            0 | EAGAIN => Ok(()),
            EINTR => Err(ListenerWaitError::InterruptSignal),
            _ => Err(ListenerWaitError::InternalFailure),
        }
    }

    /// Does not wait: a counter has room for 2^64 - 2 notifications, unless a peer stores
    /// other numbers in its memory.
    fn notify(&self) -> Result<(), NotifierNotifyError> {
        // SAFETY: the counter is open.
        match unsafe { sys::flowfd_add_with(&self.raw, 1, 0, sys::FLOWFD_NONBLOCK) } {
            0 => Ok(()),
            EAGAIN => Err(NotifierNotifyError::BufferIsFull),
            EINTR => Err(NotifierNotifyError::Interrupt),
            EACCES => Err(NotifierNotifyError::InsufficientPermissions),
            _ => Err(NotifierNotifyError::InternalFailure),
        }
    }
}

type Wait = Result<(), ListenerWaitError>;

/// The end of a notifier.
#[derive(Debug)]
pub struct Handle<E, Storage> {
    counter: Counter,
    event: PhantomData<fn() -> (E, Storage)>,
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> Abandonable for Handle<E, Storage> {
    unsafe fn abandon_in_place(this: NonNull<Self>) {
        // SAFETY: as the trait has it. The counter is of this process alone.
        unsafe { ptr::drop_in_place(this.as_ptr()) }
    }
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> HandlerInterface<E, Mgmt, Storage>
    for Handle<E, Storage>
{
    fn open(
        _name: &FileName,
        _config: &Configuration,
        mgmt: &Mgmt,
    ) -> Result<Self, NotifierOpenError> {
        let key = sys::flowfd_key {
            id: mgmt.id,
            secret: mgmt.secret,
        };
        match Counter::open(&key) {
            Ok(counter) => Ok(Handle {
                counter,
                event: PhantomData,
            }),
            Err(ENOENT) => Err(NotifierOpenError::DoesNotExist),
            Err(EINTR) => Err(NotifierOpenError::Interrupt),
            Err(EACCES | EPERM) => Err(NotifierOpenError::InsufficientPermissions),
            Err(_) => Err(NotifierOpenError::InternalFailure),
        }
    }

    fn notify(&self) -> Result<(), NotifierNotifyError> {
        self.counter.notify()
    }
}

/// The end of a listener. Its descriptor can be polled.
#[derive(Debug)]
pub struct Waiter<E, Storage> {
    counter: Counter,
    event: PhantomData<fn() -> (E, Storage)>,
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> Abandonable for Waiter<E, Storage> {
    unsafe fn abandon_in_place(this: NonNull<Self>) {
        // SAFETY: as the trait has it. The counter is of this process alone.
        unsafe { ptr::drop_in_place(this.as_ptr()) }
    }
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> FileDescriptorBased
    for Waiter<E, Storage>
{
    fn file_descriptor(&self) -> &FileDescriptor {
        &self.counter.fd
    }
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> SynchronousMultiplexing
    for Waiter<E, Storage>
{
}

impl<E: EventState, Storage: DynamicStorage<State<E, Mgmt>>> WaiterInterface<E, Mgmt, Storage>
    for Waiter<E, Storage>
{
    const IS_FILE_DESCRIPTOR_BASED: bool = true;

    /// Nothing stays of a counter whose processes have ended.
    unsafe fn remove(
        _name: &FileName,
        _config: &Configuration,
    ) -> Result<bool, NamedConceptRemoveError> {
        Ok(true)
    }

    fn remove_path_hint(_value: &Path) -> Result<(), NamedConceptPathHintRemoveError> {
        Ok(())
    }

    fn create(
        _name: &FileName,
        _config: &Configuration,
        mgmt: &mut MaybeUninit<Mgmt>,
    ) -> Result<Self, ListenerCreateError> {
        let made = Counter::create().and_then(|counter| counter.key().map(|key| (counter, key)));
        match made {
            Ok((counter, key)) => {
                mgmt.write(Mgmt {
                    id: key.id,
                    secret: key.secret,
                });
                Ok(Waiter {
                    counter,
                    event: PhantomData,
                })
            }
            Err(EACCES | EPERM) => Err(ListenerCreateError::InsufficientPermissions),
            Err(_) => Err(ListenerCreateError::InternalFailure),
        }
    }

    fn try_wait(&self) -> Wait {
        self.counter.wait(Some(Duration::ZERO))
    }

    fn timed_wait(&self, timeout: Duration) -> Wait {
        self.counter.wait(Some(timeout))
    }

    fn blocking_wait(&self) -> Wait {
        self.counter.wait(None)
    }

    fn empty_buffer(&self) -> Wait {
        self.counter.empty()
    }
}

type Storage = posix_shared_memory::Storage<State<RelocatableCountingBitSet, Mgmt>>;

/// The event that iceoryx2 recommends between processes, with a counter in place of the
/// socket.
pub type FlowfdShmCountingBitSet = EventImpl<
    RelocatableCountingBitSet,
    Mgmt,
    Storage,
    Handle<RelocatableCountingBitSet, Storage>,
    Waiter<RelocatableCountingBitSet, Storage>,
>;
