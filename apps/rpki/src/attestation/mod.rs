//! What a member of a registry may state: which network may announce its prefixes (a ROA, RFC 9582), and which networks are its
//! providers (an ASPA, draft-ietf-sidrops-aspa-profile). Each has one encoding, so two agents that know the same statements expect the same bytes.

pub(crate) mod der;

use std::{collections::BTreeSet, fmt, net::IpAddr, str::FromStr};

use rpki::repository::resources::{AsBlock, AsBlocks, Asn, IpBlock, IpBlocks, Prefix as Block, ResourceSet};
use sha2::{Digest as _, Sha256};

/// The most prefixes of a ROA, and the most providers of an ASPA.
pub const MOST_ENTRIES: usize = 4_000;

/// A prefix that a network may announce, and how long its parts may be that it announces by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
    longest: u8,
}

impl Prefix {
    /// `None`: the address has bits beyond the length, or one of the lengths does not fit.
    #[must_use]
    pub fn new(address: IpAddr, length: u8, longest: u8) -> Option<Self> {
        let (bits, width) = left(address);
        let beyond = if length >= 128 { 0 } else { u128::MAX >> length };
        (length <= longest && longest <= width && bits & beyond == 0).then_some(Self { address, length, longest })
    }

    fn block(self) -> IpBlock {
        IpBlock::from(Block::new(self.address, self.length))
    }

    /// As in a ROA (RFC 9582, section 4.3.2): the bits of the prefix, and the longest length if it is another one.
    fn encode(self) -> Vec<u8> {
        let (bits, _) = left(self.address);
        let octets = usize::from(self.length.div_ceil(8));
        let unused = (8 - self.length % 8) % 8;
        let all = bits.to_be_bytes();
        let prefix = der::value(der::BIT_STRING, &[&[unused], all.get(..octets).unwrap_or_default()]);
        let longest = (self.longest != self.length).then(|| der::number(u32::from(self.longest)));
        der::value(der::SEQUENCE, &[&prefix, &longest.unwrap_or_default()])
    }

    fn decode(mut bytes: &[u8], family: Family) -> Option<Self> {
        let bytes = &mut bytes;
        let (unused, octets) = der::take(bytes, der::BIT_STRING)?.split_first()?;
        let mut all = [0; 16];
        all.get_mut(..octets.len())?.copy_from_slice(octets);
        let length = u8::try_from(octets.len() * 8).ok()?.checked_sub(*unused)?;
        let longest = if bytes.is_empty() { length } else { u8::try_from(der::take_number(bytes)?).ok()? };
        let address = match (family, all) {
            (Family::V4, [a, b, c, d, ..]) => IpAddr::from([a, b, c, d]),
            (Family::V6, all) => IpAddr::from(all),
        };
        Self::new(address, length, longest)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const ALL: [Self; 2] = [Self::V4, Self::V6];

    fn code(self) -> [u8; 2] {
        match self {
            Self::V4 => [0, 1],
            Self::V6 => [0, 2],
        }
    }

    fn of(prefix: &Prefix) -> Self {
        if prefix.address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// The bits of an address from the left, and how many there are.
fn left(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// `192.0.2.0/24`, or `192.0.2.0/24-26` if parts of up to 26 bits may be announced.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (address, lengths) = text.split_once('/')?;
            let (length, longest) = lengths.split_once('-').unwrap_or((lengths, lengths));
            Self::new(address.parse().ok()?, length.parse().ok()?, longest.parse().ok()?)
        };
        let wrong = "is no prefix such as 192.0.2.0/24 or 2001:db8::/32-48, without bits beyond its length";
        read().ok_or_else(|| format!("{text} {wrong}"))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)?;
        if self.longest == self.length { Ok(()) } else { write!(f, "-{}", self.longest) }
    }
}

/// What a signed object attests to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attestation {
    /// A network may announce prefixes.
    Roa {
        /// The number of the network.
        asn: u32,
        /// The prefixes, at least one.
        prefixes: BTreeSet<Prefix>,
    },
    /// A network has these providers.
    Aspa {
        /// The number of the network.
        customer: u32,
        /// Those of its providers, at least one.
        providers: BTreeSet<u32>,
    },
}

impl Attestation {
    /// A ROA. `None`: no prefix, or too many ([`MOST_ENTRIES`]).
    #[must_use]
    pub fn roa(asn: u32, prefixes: BTreeSet<Prefix>) -> Option<Self> {
        (1..=MOST_ENTRIES).contains(&prefixes.len()).then_some(Self::Roa { asn, prefixes })
    }

    /// An ASPA. `None`: no provider, or too many ([`MOST_ENTRIES`]); the customer among them; 0 among others.
    #[must_use]
    pub fn aspa(customer: u32, providers: BTreeSet<u32>) -> Option<Self> {
        let counts = (1..=MOST_ENTRIES).contains(&providers.len());
        let good = customer != 0 && !providers.contains(&customer) && (!providers.contains(&0) || providers.len() == 1);
        (counts && good).then_some(Self::Aspa { customer, providers })
    }

    /// How many prefixes or providers it has.
    #[must_use]
    pub fn entries(&self) -> usize {
        match self {
            Self::Roa { prefixes, .. } => prefixes.len(),
            Self::Aspa { providers, .. } => providers.len(),
        }
    }

    /// The DER of the content (eContent).
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        #[cfg(test)]
        ENCODED.set(ENCODED.get().saturating_add(1));
        match self {
            Self::Roa { asn, prefixes } => {
                let families = Family::ALL.map(|family| {
                    let of: Vec<u8> = prefixes
                        .iter()
                        .filter(|prefix| Family::of(prefix) == family)
                        .flat_map(|prefix| prefix.encode())
                        .collect();
                    if of.is_empty() {
                        return of;
                    }
                    let code = der::value(der::OCTET_STRING, &[&family.code()]);
                    der::value(der::SEQUENCE, &[&code, &der::value(der::SEQUENCE, &[&of])])
                });
                der::value(der::SEQUENCE, &[&der::number(*asn), &der::value(der::SEQUENCE, &[&families.concat()])])
            }
            Self::Aspa { customer, providers } => {
                let version = der::value(der::CONTEXT_0, &[&der::number(1)]);
                let providers: Vec<u8> = providers.iter().flat_map(|provider| der::number(*provider)).collect();
                der::value(
                    der::SEQUENCE,
                    &[&version, &der::number(*customer), &der::value(der::SEQUENCE, &[&providers])],
                )
            }
        }
    }

    /// Reads the DER of a ROA's content. `None`: it is none, or not in its one form: in order, each prefix once, a longest length only
    /// where it is another one.
    #[must_use]
    pub fn decode_roa(bytes: &[u8]) -> Option<Self> {
        let mut outer = bytes;
        let mut content = der::take(&mut outer, der::SEQUENCE)?;
        let asn = der::take_number(&mut content)?;
        let mut families = der::take(&mut content, der::SEQUENCE)?;
        let mut prefixes = BTreeSet::new();
        while !families.is_empty() {
            let mut of = der::take(&mut families, der::SEQUENCE)?;
            let code = der::take(&mut of, der::OCTET_STRING)?;
            let family = Family::ALL.into_iter().find(|family| family.code() == code)?;
            let mut entries = der::take(&mut of, der::SEQUENCE)?;
            while !entries.is_empty() {
                prefixes.insert(Prefix::decode(der::take(&mut entries, der::SEQUENCE)?, family)?);
            }
        }
        Self::roa(asn, prefixes).filter(|read| read.encode() == bytes)
    }

    /// Reads the DER of an ASPA's content. `None`: it is none, or not in its one form.
    #[must_use]
    pub fn decode_aspa(bytes: &[u8]) -> Option<Self> {
        let mut outer = bytes;
        let mut content = der::take(&mut outer, der::SEQUENCE)?;
        der::take(&mut content, der::CONTEXT_0)?;
        let customer = der::take_number(&mut content)?;
        let mut list = der::take(&mut content, der::SEQUENCE)?;
        let mut providers = BTreeSet::new();
        while !list.is_empty() {
            providers.insert(der::take_number(&mut list)?);
        }
        Self::aspa(customer, providers).filter(|read| read.encode() == bytes)
    }

    /// SHA-256 of the content, which is what its signer's signature covers.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.encode()).into()
    }

    /// The name of the object's file: so a certificate for the object's key says which content it is for.
    #[must_use]
    pub fn file_name(&self) -> String {
        match self {
            Self::Roa { .. } => roa_file(&self.digest()),
            Self::Aspa { .. } => aspa_file(&self.digest()),
        }
    }

    /// What the certificate of the object's key has, and what a member must hold: a ROA's prefixes; an ASPA's customer.
    #[must_use]
    pub fn resources(&self) -> ResourceSet {
        match self {
            Self::Roa { prefixes, .. } => {
                let blocks = |family| {
                    let of = prefixes.iter().filter(move |prefix| Family::of(prefix) == family);
                    of.map(|prefix| prefix.block()).collect::<IpBlocks>()
                };
                ResourceSet::new(AsBlocks::empty(), blocks(Family::V4).into(), blocks(Family::V6).into())
            }
            Self::Aspa { customer, .. } => {
                let customer = AsBlock::from(Asn::from(*customer));
                let none = IpBlocks::empty;
                ResourceSet::new([customer].into_iter().collect(), none().into(), none().into())
            }
        }
    }
}

impl fmt::Display for Attestation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// So many are named; an objection has 300 characters.
        const NAMED: usize = 4;
        let (head, words): (_, Vec<String>) = match self {
            Self::Roa { asn, prefixes } => {
                (format!("the ROA of AS{asn} for"), prefixes.iter().map(Prefix::to_string).collect())
            }
            Self::Aspa { customer, providers } => (
                format!("the ASPA of AS{customer} with providers"),
                providers.iter().map(|provider| format!("AS{provider}")).collect(),
            ),
        };
        let named: Vec<_> = words.iter().take(NAMED).map(String::as_str).collect();
        write!(f, "{head} {}", named.join(", "))?;
        match words.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often contents were encoded by this thread.
    static ENCODED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn encoded() -> usize {
    ENCODED.get()
}

fn digits(digest: &[u8; 32]) -> String {
    hex::encode(digest).chars().take(40).collect()
}

/// The name of the file with the ROA whose content has this SHA-256.
#[must_use]
pub fn roa_file(content: &[u8; 32]) -> String {
    format!("{}.roa", digits(content))
}

/// The name of the file with the ASPA whose content has this SHA-256.
#[must_use]
pub fn aspa_file(content: &[u8; 32]) -> String {
    format!("{}.asa", digits(content))
}

#[cfg(test)]
mod tests {
    use rpki::{
        dep::bcder::{Mode, encode::Values as _},
        repository::roa::RoaBuilder,
    };

    use super::*;

    fn prefixes(of: &[&str]) -> BTreeSet<Prefix> {
        of.iter().map(|prefix| prefix.parse().unwrap()).collect()
    }

    /// The same content, written by the library.
    #[test]
    fn roas_are_written_as_by_others() {
        let of = ["10.0.0.0/8-24", "192.0.2.0/24", "192.0.2.128/25-32", "2001:db8::/32-48", "0.0.0.0/0", "::/0-128"];
        let roa = Attestation::roa(4_200_000_000, prefixes(&of)).unwrap();
        let mut builder = RoaBuilder::new(Asn::from(4_200_000_000));
        for prefix in prefixes(&of) {
            let longest = (prefix.longest != prefix.length).then_some(prefix.longest);
            builder.push_addr(prefix.address, prefix.length, longest);
        }
        let theirs = builder.to_attestation().encode_ref().to_captured(Mode::Der).into_bytes();
        assert_eq!(hex::encode(roa.encode()), hex::encode(&theirs));
        assert_eq!(Attestation::decode_roa(&theirs), Some(roa));
    }

    #[test]
    fn what_is_read_is_what_was_written_and_nothing_else_is() {
        let roa = Attestation::roa(64_496, prefixes(&["192.0.2.0/24-25", "2001:db8::/33"])).unwrap();
        let aspa = Attestation::aspa(64_496, [64_500, 64_501].into()).unwrap();
        assert_eq!(Attestation::decode_roa(&roa.encode()), Some(roa.clone()));
        assert_eq!(Attestation::decode_aspa(&aspa.encode()), Some(aspa.clone()));
        assert_eq!((Attestation::decode_aspa(&roa.encode()), Attestation::decode_roa(&aspa.encode())), (None, None));
        for (bytes, decode) in [
            (roa.encode(), Attestation::decode_roa as fn(&[u8]) -> Option<Attestation>),
            (aspa.encode(), Attestation::decode_aspa),
        ] {
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]), None, "{end}");
            }
            assert_eq!(decode(&[&bytes[..], &[0]].concat()), None, "one byte more");
        }
        // A longest length that says nothing.
        let twice = der::value(der::SEQUENCE, &[&[3, 4, 0, 192, 0, 2], &der::number(24)]);
        let family = der::value(der::SEQUENCE, &[&[4, 2, 0, 1], &der::value(der::SEQUENCE, &[&twice])]);
        let other = der::value(der::SEQUENCE, &[&der::number(1), &der::value(der::SEQUENCE, &[&family])]);
        assert_eq!(Attestation::decode_roa(&other), None);
    }

    #[test]
    fn prefixes_and_providers_have_to_make_sense() {
        for text in
            ["192.0.2.1/24", "192.0.2.0/33", "192.0.2.0/24-23", "192.0.2.0/24-33", "2001:db8::/16", "192.0.2.0", "x/8"]
        {
            assert!(text.parse::<Prefix>().unwrap_err().starts_with(text));
        }
        assert_eq!("192.0.2.0/24-26".parse::<Prefix>().unwrap().to_string(), "192.0.2.0/24-26");
        assert_eq!(Attestation::roa(1, BTreeSet::new()), None);
        for (customer, providers) in [(1, &[][..]), (0, &[2]), (1, &[1, 2]), (1, &[0, 2])] {
            assert_eq!(Attestation::aspa(customer, providers.iter().copied().collect()), None, "{providers:?}");
        }
        assert!(Attestation::aspa(1, [0].into()).is_some());
    }

    #[test]
    fn resources_are_those_of_the_content() {
        let roa = Attestation::roa(64_496, prefixes(&["192.0.2.0/24-25", "2001:db8::/33"])).unwrap();
        assert_eq!(roa.resources(), ResourceSet::from_strs("", "192.0.2.0/24", "2001:db8::/33").unwrap());
        let aspa = Attestation::aspa(64_496, [1].into()).unwrap();
        assert_eq!(aspa.resources(), ResourceSet::from_strs("AS64496", "", "").unwrap());
        assert_ne!(roa.file_name(), aspa.file_name());
    }
}
