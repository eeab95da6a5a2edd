//! Networks without a way out, one for each node, and the right to make them.

use std::{fs, io, net::Ipv4Addr, os::fd::OwnedFd, thread};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::{getegid, geteuid},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space},
};

use super::{kernel, netlink::Devices};

const DEVICE: &str = "wan0";
const PREFIX: u8 = 24;
/// As on Ethernet.
const MTU: u32 = 1_500;
/// How many packets a device holds until the router reads them.
const WAITING: u32 = 8_192;

/// What this system does not let us do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Neither as it is nor in a user namespace.
    #[error(
        "the system does not let this process make namespaces ({0}): run it as root, or allow user namespaces (sysctls \
         user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns; containers: --privileged)"
    )]
    Namespaces(io::Error),
    /// No such device here, or not for us.
    #[error(
        "cannot open /dev/net/tun ({0}): `modprobe tun`, make it readable and writable for this user, or run as root"
    )]
    Tun(io::Error),
    /// Something else failed.
    #[error("cannot {what}: {error}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl Refusal {
    pub(crate) fn failed(what: &'static str) -> impl Fn(Errno) -> Self {
        move |error| Self::Failed { what, error: error.into() }
    }
}

/// Gives the calling thread new namespaces of these kinds; if it lacks the right, or `apart` asks for it, together with a user
/// namespace, in which it is root and outside of which nothing changes. That works only while the process has one thread.
fn unshare(flags: UnshareFlags, apart: bool) -> Result<(), Refusal> {
    let refused = |error: Errno| Refusal::Namespaces(error.into());
    if !apart {
        match kernel::unshare(flags) {
            Err(Errno::PERM) => {}
            other => return other.map_err(refused),
        }
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    kernel::unshare(flags | UnshareFlags::NEWUSER).map_err(refused)?;
    fs::write("/proc/self/setgroups", "deny").map_err(Refusal::Namespaces)?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1")).map_err(Refusal::Namespaces)?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1")).map_err(Refusal::Namespaces)
}

/// Gets the right to make networks, in a user namespace if need be (see there). To be called before the process has a second thread.
pub fn with_privileges() -> Result<(), Refusal> {
    unshare(UnshareFlags::NEWNET, false)
}

/// Gives the children of this process a process namespace and mounts of their own. To be called before it has a second thread.
pub fn unshare_processes(apart: bool) -> Result<(), Refusal> {
    unshare(UnshareFlags::NEWPID | UnshareFlags::NEWNS, apart)
}

/// A network of its own: a loopback device, and another one whose packets the router carries.
#[derive(Debug)]
pub struct Place {
    namespace: OwnedFd,
}

impl Place {
    /// Makes a network whose only neighbour is the router, which gets the second value.
    pub(crate) fn make(address: Ipv4Addr) -> Result<(Self, OwnedFd), Refusal> {
        apart(|| {
            kernel::unshare(UnshareFlags::NEWNET).map_err(|error| Refusal::Namespaces(error.into()))?;
            let device = kernel::tun(DEVICE).map_err(|error| Refusal::Tun(error.into()))?;
            let set_up = || {
                let devices = Devices::open()?;
                devices.turn_on("lo", None)?;
                devices.set_address(DEVICE, address, PREFIX)?;
                devices.turn_on(DEVICE, Some((MTU, WAITING)))
            };
            set_up().map_err(Refusal::failed("set up the device of a node"))?;
            let namespace =
                rustix::fs::open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            let namespace = namespace.map_err(Refusal::failed("open the network of a node"))?;
            Ok((Self { namespace }, device))
        })
    }

    /// What was opened before, such as by another process.
    pub fn open(path: &str) -> io::Result<Self> {
        let namespace = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { namespace })
    }

    /// Moves the calling thread there, with the threads and processes that it starts later. Sockets stay where they were made.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(rustix::fd::AsFd::as_fd(&self.namespace), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something there, such as opening a socket or starting a process, in a thread of its own.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        apart(|| self.enter().and_then(|()| work()))
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.namespace
    }
}

/// Runs work in a thread of its own, because what it changes is the thread's.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
