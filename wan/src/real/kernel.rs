//! What the kernel is asked for and no library offers in safe form.

#![allow(unsafe_code, reason = "two calls, each with its reason; reviewed as a whole")]

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags},
    io,
    ioctl::{self, Opcode, Updater},
    thread::{UnshareFlags, unshare_unsafe},
};

/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = ioctl::opcode::write::<i32>(b'T', 202);
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;

/// The kernel's `struct ifreq`, as far as `TUNSETIFF` looks at it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Namespaces of its own for the calling thread and its children.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: no caller asks for CLONE_FILES, the only flag that makes the call unsafe, since it parts descriptors from threads.
    unsafe { unshare_unsafe(flags.difference(UnshareFlags::FILES)) }
}

/// Makes a TUN device in the calling thread's network. It exists as long as the descriptor, whose reads and writes do not block.
pub(crate) fn tun(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    let mut request = InterfaceRequest { name: [0; 16], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    // The last byte stays zero.
    for (place, byte) in request.name.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    // SAFETY: the operation takes a pointer to a `struct ifreq`, which has 40 bytes on 64-bit systems and 32 on others; the
    // kernel writes the name back into it.
    unsafe { ioctl::ioctl(device.as_fd(), Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request))? };
    Ok(device)
}
