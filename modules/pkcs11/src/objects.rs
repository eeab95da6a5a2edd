//! Keys of a group as PKCS#11 shows them: two objects for each, the public and the private key, with the same attributes for as long as
//! the key lives.

use core::fmt;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use cryptoki_sys::{
    CK_ATTRIBUTE_TYPE, CK_OBJECT_CLASS, CK_OBJECT_HANDLE, CK_ULONG, CK_UNAVAILABLE_INFORMATION, CKA_ALLOWED_MECHANISMS,
    CKA_ALWAYS_AUTHENTICATE, CKA_ALWAYS_SENSITIVE, CKA_CLASS, CKA_COEFFICIENT, CKA_COPYABLE, CKA_DECRYPT, CKA_DERIVE,
    CKA_DESTROYABLE, CKA_EC_PARAMS, CKA_EC_POINT, CKA_ENCRYPT, CKA_END_DATE, CKA_EXPONENT_1, CKA_EXPONENT_2,
    CKA_EXTRACTABLE, CKA_ID, CKA_KEY_GEN_MECHANISM, CKA_KEY_TYPE, CKA_LABEL, CKA_LOCAL, CKA_MODIFIABLE, CKA_MODULUS,
    CKA_MODULUS_BITS, CKA_NEVER_EXTRACTABLE, CKA_PRIME_1, CKA_PRIME_2, CKA_PRIVATE, CKA_PRIVATE_EXPONENT,
    CKA_PUBLIC_EXPONENT, CKA_PUBLIC_KEY_INFO, CKA_SENSITIVE, CKA_SIGN, CKA_SIGN_RECOVER, CKA_START_DATE, CKA_SUBJECT,
    CKA_TOKEN, CKA_TRUSTED, CKA_UNIQUE_ID, CKA_UNWRAP, CKA_VALUE, CKA_VERIFY, CKA_VERIFY_RECOVER, CKA_WRAP,
    CKA_WRAP_WITH_TRUSTED, CKK_EC, CKK_EC_EDWARDS, CKK_RSA, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKR_ATTRIBUTE_SENSITIVE,
    CKR_ATTRIBUTE_TYPE_INVALID,
};
use theta_keyfiles::public_key_info;
use theta_keypool::{Binding, Sharing, Shown};
use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, PublicParts},
    signatures::{ecdsa::uncompressed_key, sh00::PUBLIC_EXPONENT},
};

use crate::{
    mechanisms::{self, Request},
    refusal::{Outcome, Refusal},
};

/// The length of `CKA_ID` in bytes: that of a SHA-1 digest, which is what hosts expect.
const ID: usize = 20;

/// An attribute of a host's template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) kind: CK_ATTRIBUTE_TYPE,
    pub(crate) value: Vec<u8>,
}

/// Which of a key's two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Public,
    Private,
}

/// A version of a key as the group has it.
#[derive(Clone)]
pub(crate) struct LiveKey {
    /// What people call it: its name, and with a version if another one is meant by the name.
    pub(crate) label: String,
    /// How the nodes are asked for it: `NAME@VERSION`.
    pub(crate) reference: String,
    /// The public key.
    pub(crate) public: AnyPublicKey,
    /// Whether it signs: a retired or disabled version does not, and its signatures still verify.
    pub(crate) signs: bool,
    /// How it is shared, if the nodes tell so alike.
    pub(crate) sharing: Option<Sharing>,
    shape: Shape,
}

/// The public key in the words of PKCS#11.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Curve { kind: CK_ULONG, parameters: &'static [u8], point: Vec<u8> },
    Rsa { modulus: Vec<u8> },
}

/// The next handle of an object.
pub(crate) fn next_handle(handles: &AtomicU64) -> u64 {
    handles.fetch_add(1, Ordering::Relaxed)
}

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) handle: CK_OBJECT_HANDLE,
    pub(crate) class: Class,
    pub(crate) key: LiveKey,
    /// Whether it is on the token, and does not go with a session.
    pub(crate) on_token: bool,
    /// Whether the host sees it only after it has logged in.
    pub(crate) hidden: bool,
    /// Whether the host may destroy it.
    pub(crate) destroyable: bool,
    /// As what a host knows it, if it is a key that the host has made.
    pub(crate) binding: Option<Arc<Binding>>,
}

impl fmt::Debug for LiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveKey").field(&self.reference).field(&self.public.suite()).finish()
    }
}

impl LiveKey {
    /// The key, if PKCS#11 has words for it.
    pub(crate) fn new(label: String, reference: String, public: AnyPublicKey, signs: bool) -> Option<Self> {
        let shape = Shape::of(&public)?;
        Some(Self { label, reference, public, signs, sharing: None, shape })
    }

    /// The same, shared so.
    pub(crate) fn shared(self, sharing: Option<Sharing>) -> Self {
        Self { sharing, ..self }
    }

    /// The name, if this is the first version of its key, as keys of pools are.
    pub(crate) fn name(&self) -> Option<&str> {
        self.reference.strip_suffix("@1")
    }

    /// The name, whichever version this is.
    pub(crate) fn bare_name(&self) -> &str {
        self.reference.split_once('@').map_or(&self.reference, |(name, _)| name)
    }

    /// The bits of the modulus of a key of RSA.
    pub(crate) fn modulus_bits(&self) -> Option<usize> {
        match &self.shape {
            Shape::Curve { .. } => None,
            // The first byte is not zero, and the keys have 2048, 3072 or 4096 bits exactly.
            Shape::Rsa { modulus } => Some(modulus.len().saturating_mul(8)),
        }
    }

    /// How long a signature is, in bytes.
    pub(crate) fn signature_len(&self) -> usize {
        match &self.shape {
            // R and s of Ed25519, or r and s of ECDSA.
            Shape::Curve { .. } => 64,
            Shape::Rsa { modulus } => modulus.len(),
        }
    }

    /// Whether this is a signature of what was asked, under this key.
    pub(crate) fn accepts(&self, request: &Request, signature: &[u8]) -> bool {
        let verified = match request {
            Request::Message(message) => self.public.verify(message, signature, &[]),
            Request::Digest(digest) => self.public.verify_digest(digest, signature),
        };
        signature.len() == self.signature_len() && verified.is_ok()
    }

    /// Whether a host's public key is this one: it has named its numbers, or its point with the curve.
    pub(crate) fn is_given_by(&self, template: &[Attribute]) -> bool {
        let given = |kind: CK_ATTRIBUTE_TYPE| {
            template.iter().find(|attribute| attribute.kind == kind).map(|attribute| attribute.value.as_slice())
        };
        match &self.shape {
            Shape::Rsa { modulus } => {
                let without_zeros =
                    |bytes: &'_ [u8]| bytes.iter().position(|byte| *byte != 0).map_or(0, |at| bytes.len() - at);
                let same = |kind, own: &[u8]| {
                    given(kind).is_some_and(|bytes| bytes.get(bytes.len() - without_zeros(bytes)..) == Some(own))
                };
                same(CKA_MODULUS, modulus) && same(CKA_PUBLIC_EXPONENT, &exponent())
            }
            Shape::Curve { parameters, point, .. } => {
                given(CKA_EC_PARAMS) == Some(parameters)
                    && given(CKA_EC_POINT).is_some_and(|bytes| bytes == point || octet_string(bytes) == *point)
            }
        }
    }
}

impl Shape {
    fn of(public: &AnyPublicKey) -> Option<Self> {
        // The curves by their object identifiers (RFC 5480, RFC 8410, SEC 2).
        const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
        const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
        const SECP256K1: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a];
        let curve = |kind, parameters, point: &[u8]| Self::Curve { kind, parameters, point: octet_string(point) };
        match public.suite() {
            Suite::FrostEd25519 => Some(curve(CKK_EC_EDWARDS, ED25519, public.public_key_bytes())),
            Suite::EcdsaP256 => Some(curve(CKK_EC, P256, &uncompressed_key(public)?)),
            Suite::EcdsaSecp256k1 => Some(curve(CKK_EC, SECP256K1, &uncompressed_key(public)?)),
            Suite::Sh00Pkcs1Sha256 | Suite::Sh00Pkcs1Sha512 | Suite::Sh00PssSha256 => match public.parts() {
                PublicParts::Rsa { modulus, .. } => Some(Self::Rsa { modulus }),
                PublicParts::Curve(_) => None,
            },
            _ => None,
        }
    }

    const fn key_type(&self) -> CK_ULONG {
        match self {
            Self::Curve { kind, .. } => *kind,
            Self::Rsa { .. } => CKK_RSA,
        }
    }
}

/// DER of an octet string of under 128 bytes.
fn octet_string(bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    [&[0x04, len], bytes].concat()
}

/// The public exponent of all keys, without leading zeros.
fn exponent() -> Vec<u8> {
    PUBLIC_EXPONENT.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect()
}

fn number(value: CK_ULONG) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

fn truth(value: bool) -> Vec<u8> {
    vec![u8::from(value)]
}

impl Object {
    /// An attribute's value as PKCS#11 has it in memory.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_SENSITIVE` for parts of private keys, which nobody has, and `CKR_ATTRIBUTE_TYPE_INVALID` for what such an object
    /// does not have.
    pub(crate) fn attribute(&self, kind: CK_ATTRIBUTE_TYPE) -> Outcome<Vec<u8>> {
        let own = match self.class {
            Class::Public => self.of_public_key(kind),
            Class::Private => self.of_private_key(kind)?,
        };
        own.or_else(|| self.of_any_key(kind)).ok_or(Refusal(CKR_ATTRIBUTE_TYPE_INVALID))
    }

    fn class(&self) -> CK_OBJECT_CLASS {
        match self.class {
            Class::Public => CKO_PUBLIC_KEY,
            Class::Private => CKO_PRIVATE_KEY,
        }
    }

    fn of_any_key(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<Vec<u8>> {
        let id = self.key.public.key_id().as_bytes();
        Some(match kind {
            CKA_CLASS => number(self.class()),
            CKA_TOKEN => truth(self.on_token),
            CKA_PRIVATE => truth(self.hidden),
            CKA_COPYABLE | CKA_DERIVE => truth(false),
            CKA_MODIFIABLE | CKA_LOCAL => truth(self.binding.is_some()),
            CKA_DESTROYABLE => truth(self.destroyable),
            CKA_LABEL => {
                let given = self.shown().and_then(|shown| shown.label.as_ref());
                given.unwrap_or(&self.key.label).clone().into_bytes()
            }
            CKA_UNIQUE_ID => format!("{}-{}", hex::encode(id), self.class()).into_bytes(),
            CKA_KEY_TYPE => number(self.key.shape.key_type()),
            CKA_ID => match self.shown().and_then(|shown| shown.id.as_ref()) {
                Some(given) => given.clone(),
                None => id.iter().copied().take(ID).collect(),
            },
            CKA_START_DATE | CKA_END_DATE | CKA_SUBJECT => Vec::new(),
            CKA_KEY_GEN_MECHANISM => {
                number(self.binding.as_ref().map_or(CK_UNAVAILABLE_INFORMATION, |it| it.mechanism))
            }
            CKA_ALLOWED_MECHANISMS => {
                mechanisms::of(self.key.public.suite()).iter().flat_map(|kind| kind.to_ne_bytes()).collect()
            }
            CKA_PUBLIC_KEY_INFO => public_key_info(&self.key.public)?,
            _ => return self.of_shape(kind),
        })
    }

    /// As what the host knows it that has made it.
    fn shown(&self) -> Option<&Shown> {
        let binding = self.binding.as_ref()?;
        match self.class {
            Class::Public => binding.public.as_ref(),
            Class::Private => Some(&binding.private),
        }
    }

    /// What stands for the public key itself. Private keys have it, too, for hosts that look there.
    fn of_shape(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<Vec<u8>> {
        match (&self.key.shape, kind) {
            (Shape::Curve { parameters, .. }, CKA_EC_PARAMS) => Some(parameters.to_vec()),
            (Shape::Curve { point, .. }, CKA_EC_POINT) => Some(point.clone()),
            (Shape::Rsa { modulus }, CKA_MODULUS) => Some(modulus.clone()),
            (Shape::Rsa { .. }, CKA_MODULUS_BITS) => self.key.modulus_bits()?.try_into().ok().map(number),
            (Shape::Rsa { .. }, CKA_PUBLIC_EXPONENT) => Some(exponent()),
            _ => None,
        }
    }

    fn of_public_key(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<Vec<u8>> {
        match kind {
            CKA_VERIFY => Some(truth(true)),
            CKA_ENCRYPT | CKA_VERIFY_RECOVER | CKA_WRAP | CKA_TRUSTED => Some(truth(false)),
            _ => None,
        }
    }

    fn of_private_key(&self, kind: CK_ATTRIBUTE_TYPE) -> Outcome<Option<Vec<u8>>> {
        let secret = match self.key.shape {
            Shape::Curve { .. } => kind == CKA_VALUE,
            Shape::Rsa { .. } => matches!(
                kind,
                CKA_PRIVATE_EXPONENT | CKA_PRIME_1 | CKA_PRIME_2 | CKA_EXPONENT_1 | CKA_EXPONENT_2 | CKA_COEFFICIENT
            ),
        };
        if secret {
            return Err(Refusal(CKR_ATTRIBUTE_SENSITIVE));
        }
        Ok(match kind {
            CKA_SIGN | CKA_SENSITIVE | CKA_ALWAYS_SENSITIVE | CKA_NEVER_EXTRACTABLE => Some(truth(true)),
            CKA_DECRYPT
            | CKA_SIGN_RECOVER
            | CKA_UNWRAP
            | CKA_EXTRACTABLE
            | CKA_WRAP_WITH_TRUSTED
            | CKA_ALWAYS_AUTHENTICATE => Some(truth(false)),
            _ => None,
        })
    }

    /// Whether it has all attributes of a template. A key may also be looked for as `NAME@VERSION`. Hosts make private keys with `CKA_PRIVATE`
    /// and look for them by it: where no PIN is needed it makes no difference, and both values are taken.
    pub(crate) fn matches(&self, template: &[Attribute]) -> bool {
        template.iter().all(|wanted| {
            let named = wanted.kind == CKA_LABEL && wanted.value == self.key.reference.as_bytes();
            let open = wanted.kind == CKA_PRIVATE && self.class == Class::Private && !self.hidden;
            named
                || (open && matches!(wanted.value.as_slice(), [0 | 1]))
                || self.attribute(wanted.kind).is_ok_and(|value| value == wanted.value)
        })
    }

    /// About how many bytes its attributes take.
    pub(crate) fn size(&self) -> usize {
        public_key_info(&self.key.public).map_or(0, |info| info.len()).saturating_add(self.key.label.len())
    }
}

#[cfg(test)]
mod tests {
    use theta_schemes::{
        groups::Secret,
        keys::{deal_any, import_any},
    };

    use super::*;

    fn key(suite: Suite) -> Option<LiveKey> {
        let threshold = theta_sharing::Threshold::new(2, 3).unwrap();
        let mut rng = <rand_chacha::ChaCha20Rng as rand_chacha::rand_core::SeedableRng>::from_seed([7; 32]);
        let (public, _) = match suite {
            Suite::EcdsaP256 => import_any(suite, threshold, &Secret::new(vec![1; 32]), &mut rng).unwrap(),
            _ => deal_any(suite, threshold, &mut rng),
        };
        LiveKey::new("gold".to_owned(), "gold@1".to_owned(), public, true)
    }

    fn object(key: LiveKey, class: Class) -> Object {
        Object { handle: 1, class, key, on_token: true, hidden: false, destroyable: false, binding: None }
    }

    #[test]
    fn keys_have_the_attributes_of_their_kind() {
        let (p256, ed25519) = (key(Suite::EcdsaP256).unwrap(), key(Suite::FrostEd25519).unwrap());
        assert_eq!((p256.signature_len(), ed25519.signature_len()), (64, 64));
        let private = object(p256, Class::Private);
        let public = object(ed25519, Class::Public);
        let point = private.attribute(CKA_EC_POINT).unwrap();
        assert_eq!((point.len(), &point[..3]), (67, &[4, 65, 4][..]));
        assert_eq!(public.attribute(CKA_EC_POINT).unwrap()[..2], [4, 32]);
        assert_eq!(private.attribute(CKA_VALUE), Err(Refusal(CKR_ATTRIBUTE_SENSITIVE)));
        assert_eq!(public.attribute(CKA_VALUE), Err(Refusal(CKR_ATTRIBUTE_TYPE_INVALID)));
        assert_eq!(private.attribute(CKA_MODULUS), Err(Refusal(CKR_ATTRIBUTE_TYPE_INVALID)));
        assert_eq!(public.attribute(CKA_SIGN), Err(Refusal(CKR_ATTRIBUTE_TYPE_INVALID)));
        assert_eq!(private.attribute(CKA_ID).unwrap().len(), 20);
        assert!(key(Suite::Bls04MinPk).is_none() && key(Suite::FrostP256).is_none());
    }

    #[test]
    fn hosts_know_their_keys_by_what_they_have_called_them() {
        let mut private = object(key(Suite::EcdsaP256).unwrap(), Class::Private);
        let own = private.attribute(CKA_ID).unwrap();
        let shown = |id: Option<&[u8]>, label: Option<&str>| Shown {
            id: id.map(<[u8]>::to_vec),
            label: label.map(str::to_owned),
        };
        private.binding = Some(Arc::new(Binding {
            key: "gold@1".to_owned(),
            key_id: *private.key.public.key_id().as_bytes(),
            state: theta_keypool::State::Bound,
            since: 0,
            mechanism: 0x1040,
            private: shown(Some(&[1, 2]), None),
            public: Some(shown(None, Some("zone"))),
        }));
        let public = Object { class: Class::Public, ..private.clone() };
        let attribute = |object: &Object, kind| object.attribute(kind).unwrap();
        assert_eq!((attribute(&private, CKA_ID), attribute(&private, CKA_LABEL)), (vec![1, 2], b"gold".to_vec()));
        assert_eq!((attribute(&public, CKA_ID), attribute(&public, CKA_LABEL)), (own, b"zone".to_vec()));
        assert_eq!(
            (attribute(&public, CKA_LOCAL), attribute(&public, CKA_KEY_GEN_MECHANISM)),
            (vec![1], number(0x1040))
        );
        // The group's name of it is good as before.
        assert!(private.matches(&[Attribute { kind: CKA_LABEL, value: b"gold@1".to_vec() }]));
    }

    #[test]
    fn templates_match_all_or_nothing() {
        let private = object(key(Suite::EcdsaP256).unwrap(), Class::Private);
        let label = |name: &str| Attribute { kind: CKA_LABEL, value: name.as_bytes().to_vec() };
        let class = Attribute { kind: CKA_CLASS, value: number(CKO_PRIVATE_KEY) };
        assert!(private.matches(&[]) && private.matches(&[label("gold"), class.clone()]));
        assert!(private.matches(&[label("gold@1")]));
        assert!(!private.matches(&[class, label("gold@2")]));
        assert!(!private.matches(&[Attribute { kind: CKA_MODULUS, value: vec![1] }]));
    }

    /// A host that makes a key asks for a private one, and finds it so.
    #[test]
    fn without_a_pin_private_keys_are_found_either_way() {
        let private = |value: u8| [Attribute { kind: CKA_PRIVATE, value: vec![value] }];
        let key = key(Suite::EcdsaP256).unwrap();
        let open = object(key.clone(), Class::Private);
        assert!(open.matches(&private(0)) && open.matches(&private(1)) && !open.matches(&private(7)));
        let hidden = Object { hidden: true, ..open };
        assert!(!hidden.matches(&private(0)) && hidden.matches(&private(1)));
        let public = object(key, Class::Public);
        assert!(public.matches(&private(0)) && !public.matches(&private(1)));
    }

    #[test]
    fn a_host_names_a_key_by_its_numbers() {
        let p256 = key(Suite::EcdsaP256).unwrap();
        let public = object(p256.clone(), Class::Public);
        let given = |kind| Attribute { kind, value: public.attribute(kind).unwrap() };
        let template = [given(CKA_EC_PARAMS), given(CKA_EC_POINT)];
        assert!(p256.is_given_by(&template) && !p256.is_given_by(&template[..1]));
        let mut bare = template.clone();
        bare[1].value.drain(..2);
        assert!(p256.is_given_by(&bare), "a point without its octet string");
        assert!(!key(Suite::FrostEd25519).unwrap().is_given_by(&template));
    }
}
