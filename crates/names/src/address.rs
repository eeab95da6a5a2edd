//! Where something listens: a host, by name or number, and a port.

use core::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// An address that others connect to, in its one way to be written: `host:port` with the host in lower case, `192.0.2.1:7001`, or
/// `[2001:db8::1]:7001` as in RFC 5952. A name is looked up each time that somebody connects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    text: String,
    port: u16,
}

/// Not an address that others can connect to: what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write it as host:port, 192.0.2.1:7001 or [2001:db8::1]:7001")]
pub struct AddressError(pub &'static str);

const UNSPECIFIED: AddressError = AddressError("others cannot connect to the unspecified address");

impl Address {
    /// The longest, in bytes: a name of 253, a colon and a port of 5.
    pub const MOST_BYTES: usize = 259;

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host: a name, an IPv4 address, or an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.text.rsplit_once(':').map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, which is never 0.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (host, port) = text.rsplit_once(':').ok_or(AddressError("it has no port"))?;
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse::<u16>().ok().filter(|port| digits && *port != 0);
        let port = port.ok_or(AddressError("its port is not between 1 and 65535"))?;
        let host = canonical_host(host)?;
        Ok(Self { text: format!("{host}:{port}"), port })
    }
}

fn canonical_host(host: &str) -> Result<String, AddressError> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(AddressError("its bracket does not close"))?;
        let ip: Ipv6Addr = inner.parse().map_err(|_| AddressError("no IPv6 address is in its brackets"))?;
        return if ip.is_unspecified() { Err(UNSPECIFIED) } else { Ok(format!("[{ip}]")) };
    }
    if host.is_empty() {
        return Err(AddressError("it has no host"));
    }
    if host.contains(':') {
        return Err(AddressError("an IPv6 address needs brackets"));
    }
    if host.len() > 253 || !host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)) {
        return Err(AddressError("its host is no name or IP address"));
    }
    match host.parse::<Ipv4Addr>() {
        Ok(ip) if ip.is_unspecified() => Err(UNSPECIFIED),
        _ => Ok(host.to_ascii_lowercase()),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_to_write_an_address() {
        for (written, canonical, host) in [
            ("Node-1.Example.org:7101", "node-1.example.org:7101", "node-1.example.org"),
            ("192.0.2.1:07001", "192.0.2.1:7001", "192.0.2.1"),
            ("[2001:DB8:0::1]:7001", "[2001:db8::1]:7001", "2001:db8::1"),
        ] {
            let address: Address = written.parse().unwrap();
            assert_eq!((address.as_str(), address.host()), (canonical, host));
            assert_eq!(canonical.parse(), Ok(address));
        }
    }

    #[test]
    fn what_nobody_can_connect_to_is_refused() {
        let long = format!("{}:1", "a".repeat(254));
        for wrong in [
            "",
            "host",
            "host:",
            ":1",
            "host:0",
            "host:65536",
            "host:+1",
            "::1:7",
            "[::1:7",
            "[x]:7",
            "0.0.0.0:1",
            "[::]:1",
            "a b:1",
            &long,
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong:?}");
        }
        assert_eq!(
            format!("{}:65535", "a".repeat(253)).parse::<Address>().unwrap().as_str().len(),
            Address::MOST_BYTES
        );
    }
}
