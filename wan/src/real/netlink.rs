//! Addresses of devices and their state, by rtnetlink (`man 7 rtnetlink`).

use std::{net::Ipv4Addr, os::fd::OwnedFd};

use rustix::{
    io,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, netlink::SocketAddrNetlink, recv,
        sendto, socket_with,
    },
};

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const NLM_F_REQUEST_ACK: u16 = 0x5;
const NLM_F_CREATE_EXCL: u16 = 0x600;
const IFF_UP: u32 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const AF_INET: u8 = 2;
const HEADER_BYTES: usize = 16;

/// The devices of the calling thread's network.
pub(crate) struct Devices(OwnedFd);

impl Devices {
    pub(crate) fn open() -> io::Result<Self> {
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).map(Self)
    }

    /// Gives a device its address and those of its network as neighbours behind it.
    pub(crate) fn set_address(&self, device: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        let mut body = vec![AF_INET, prefix, 0, 0];
        body.extend(netdevice::name_to_index(&self.0, device)?.to_ne_bytes());
        attribute(&mut body, IFA_LOCAL, address.octets());
        attribute(&mut body, IFA_ADDRESS, address.octets());
        self.ask(RTM_NEWADDR, NLM_F_REQUEST_ACK | NLM_F_CREATE_EXCL, &body)
    }

    /// Turns a device on; `sizes` are the largest packet and how many packets wait at most until they are read.
    pub(crate) fn turn_on(&self, device: &str, sizes: Option<(u32, u32)>) -> io::Result<()> {
        let index = netdevice::name_to_index(&self.0, device)?;
        let mut body = vec![0; 4];
        body.extend(index.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        body.extend(IFF_UP.to_ne_bytes());
        if let Some((packet, waiting)) = sizes {
            attribute(&mut body, IFLA_MTU, packet.to_ne_bytes());
            attribute(&mut body, IFLA_TXQLEN, waiting.to_ne_bytes());
        }
        self.ask(RTM_NEWLINK, NLM_F_REQUEST_ACK, &body)
    }

    fn ask(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(HEADER_BYTES + body.len()).map_err(|_| io::Errno::MSGSIZE)?;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        sendto(&self.0, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answer = [0; 1_024];
        let (_, bytes) = recv(&self.0, &mut answer, RecvFlags::empty())?;
        outcome(answer.get(..bytes).unwrap_or_default())
    }
}

/// An attribute, whose values all have four bytes here.
fn attribute(body: &mut Vec<u8>, kind: u16, value: [u8; 4]) {
    body.extend(8_u16.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

/// What the kernel's answer means: an error number follows the header, 0 for none.
fn outcome(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    let error =
        answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Errno::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_kernel_are_read() {
        let answer = |kind: u16, error: i32| {
            [&36_u32.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], &error.to_ne_bytes(), &[0; 16]].concat()
        };
        assert_eq!(outcome(&answer(NLMSG_ERROR, 0)), Ok(()));
        assert_eq!(outcome(&answer(NLMSG_ERROR, -1)), Err(io::Errno::PERM));
        assert_eq!(outcome(&answer(3, 0)), Err(io::Errno::PROTO));
        assert_eq!(outcome(&answer(NLMSG_ERROR, 0)[..19]), Err(io::Errno::PROTO));
    }
}
