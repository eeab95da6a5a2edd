//! What may be signed: a certificate, a list of revoked certificates, or the attributes of a signed object, which have the digest of its content.
//! What is read is written again, and has to be the same bytes: nothing is signed that was not understood.

use rpki::{
    dep::bcder::{Mode, encode::Values as _},
    oid,
    repository::{
        cert::TbsCert,
        crl::{RevokedCertificates, TbsCertList},
        manifest::ManifestContent,
        sigobj::SignedAttrs,
    },
};

/// The most bytes of an object or a content that is looked at.
pub const MOST_BYTES: usize = 4 << 20;
/// The tag of the attributes as they are signed (SET OF), and as they are in the object ([0]).
const SIGNED_AS: u8 = 0x31;
const CARRIED_AS: u8 = 0xa0;

/// What the content of a signed object is, as its attributes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A ROA.
    Roa,
    /// An ASPA.
    Aspa,
    /// A manifest.
    Manifest,
}

/// The attributes of a signed object (RFC 6488, section 2.1.6.4), which its own key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What the content is.
    pub kind: Kind,
    /// SHA-256 of the content.
    pub digest: [u8; 32],
    /// When it was signed, in seconds since 1970.
    pub time: i64,
}

/// What a node is asked to sign.
#[derive(Clone, Debug)]
pub enum Object {
    /// A certificate (RFC 6487, section 4).
    Certificate(Box<TbsCert>),
    /// A list of revoked certificates (RFC 6487, section 5).
    List(Box<TbsCertList<RevokedCertificates>>),
    /// The attributes of a signed object.
    Attributes(Attributes),
}

impl Object {
    /// Reads the bytes that a signature is to cover. `None`: they are none of these, or not in the one form in which they are made here.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MOST_BYTES {
            return None;
        }
        if bytes.first() == Some(&SIGNED_AS) {
            return read_attributes(bytes).map(Self::Attributes);
        }
        if let Ok(certificate) = Mode::Der.decode(bytes, TbsCert::from_constructed) {
            let same = certificate.encode_ref().to_captured(Mode::Der).as_slice() == bytes;
            return same.then(|| Self::Certificate(Box::new(certificate)));
        }
        let list = Mode::Der.decode(bytes, TbsCertList::take_from).ok()?;
        let same = list.encode_ref().to_captured(Mode::Der).as_slice() == bytes;
        same.then(|| Self::List(Box::new(list)))
    }
}

fn read_attributes(bytes: &[u8]) -> Option<Attributes> {
    let mut carried = bytes.to_vec();
    *carried.first_mut()? = CARRIED_AS;
    let (attributes, digest, kind, time) = Mode::Der.decode(carried.as_slice(), SignedAttrs::take_from).ok()?;
    if attributes.encode_verify() != bytes {
        return None;
    }
    let kind = if kind == oid::ROUTE_ORIGIN_AUTHZ {
        Kind::Roa
    } else if kind == oid::CT_ASPA {
        Kind::Aspa
    } else if kind == oid::CT_RPKI_MANIFEST {
        Kind::Manifest
    } else {
        return None;
    };
    let digest: &[u8] = digest.as_ref();
    Some(Attributes { kind, digest: digest.try_into().ok()?, time: time.timestamp() })
}

/// Reads the content of a manifest (RFC 9286, section 4.2). `None`: it is none, or not in its one form.
#[must_use]
pub fn read_manifest(bytes: &[u8]) -> Option<ManifestContent> {
    let content = Mode::Der.decode(bytes, ManifestContent::take_from).ok()?;
    let same = content.encode_ref().to_captured(Mode::Der).as_slice() == bytes;
    same.then_some(content)
}
