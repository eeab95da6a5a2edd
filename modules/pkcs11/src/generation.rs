//! What kind of key a host wants to make, by its mechanism and its two templates.

use cryptoki_sys::{
    CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CK_RV, CK_ULONG, CKA_ALWAYS_AUTHENTICATE, CKA_CLASS, CKA_EC_PARAMS,
    CKA_EXTRACTABLE, CKA_ID, CKA_KEY_TYPE, CKA_LABEL, CKA_MODULUS_BITS, CKA_PUBLIC_EXPONENT, CKA_SENSITIVE, CKA_SIGN,
    CKA_TOKEN, CKK_EC, CKK_EC_EDWARDS, CKK_RSA, CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EC_KEY_PAIR_GEN, CKM_EDDSA,
    CKM_RSA_PKCS_KEY_PAIR_GEN, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, CKR_ATTRIBUTE_VALUE_INVALID, CKR_CURVE_NOT_SUPPORTED,
    CKR_MECHANISM_INVALID, CKR_TEMPLATE_INCOMPLETE, CKR_TEMPLATE_INCONSISTENT,
};
use theta_keypool::Shown;
use theta_schemes::{Suite, signatures::sh00::PUBLIC_EXPONENT};

use crate::{mechanisms::Mechanism, objects::Attribute, refusal::Refusal};

/// The longest `CKA_ID` and label that a host gives, in bytes.
const MOST: usize = 1024;

/// The key that a host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) suite: Suite,
    /// The bits of an RSA modulus; `None` for other keys.
    pub(crate) modulus_bits: Option<usize>,
    /// As what the host will look for the public key.
    pub(crate) public: Shown,
    /// As what the host will look for the private key.
    pub(crate) private: Shown,
}

/// Why there is no such key: for the host, and in words for the log.
pub(crate) type Unwanted = (Refusal, String);

fn refused<T>(code: CK_RV, reason: impl Into<String>) -> Result<T, Unwanted> {
    Err((Refusal(code), reason.into()))
}

/// Reads what the host wants. Attributes that are not named here are left to what the keys are: hosts ask for uses that they do not make.
pub(crate) fn wanted(mechanism: &Mechanism, public: &[Attribute], private: &[Attribute]) -> Result<Wanted, Unwanted> {
    let kind = match mechanism.kind {
        CKM_EC_KEY_PAIR_GEN => CKK_EC,
        // GnuTLS before 3.8.9 names the mechanism of the signature.
        CKM_EC_EDWARDS_KEY_PAIR_GEN | CKM_EDDSA => CKK_EC_EDWARDS,
        CKM_RSA_PKCS_KEY_PAIR_GEN => CKK_RSA,
        _ => return refused(CKR_MECHANISM_INVALID, "it makes no keys of pools"),
    };
    if !mechanism.parameters.is_empty() {
        return refused(cryptoki_sys::CKR_MECHANISM_PARAM_INVALID, "it has no parameters");
    }
    check(public, CKO_PUBLIC_KEY, kind)?;
    check(private, CKO_PRIVATE_KEY, kind)?;
    check_private(private)?;
    let given = |kind| value(public, kind).or_else(|| value(private, kind));
    let (suite, modulus_bits) = match kind {
        CKK_RSA => (Suite::Sh00Pkcs1Sha256, Some(modulus_bits(given(CKA_MODULUS_BITS), given(CKA_PUBLIC_EXPONENT))?)),
        _ => (curve(kind, given(CKA_EC_PARAMS))?, None),
    };
    let (public, private) = (shown(public)?, shown(private)?);
    // What a host gives for one of the two is meant for both, where it does not say otherwise.
    let or = |own: Shown, other: &Shown| Shown {
        id: own.id.or_else(|| other.id.clone()),
        label: own.label.or_else(|| other.label.clone()),
    };
    let (public, private) = (or(public.clone(), &private), or(private, &public));
    Ok(Wanted { mechanism: mechanism.kind, suite, modulus_bits, public, private })
}

fn value(template: &[Attribute], kind: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
    template.iter().find(|attribute| attribute.kind == kind).map(|attribute| attribute.value.as_slice())
}

/// Checks what both templates say of their objects.
fn check(template: &[Attribute], class: CK_ULONG, kind: CK_ULONG) -> Result<(), Unwanted> {
    let other = |attribute, own: CK_ULONG| value(template, attribute).is_some_and(|value| value != own.to_ne_bytes());
    if other(CKA_CLASS, class) || other(CKA_KEY_TYPE, kind) {
        return refused(CKR_TEMPLATE_INCONSISTENT, "the template is of another kind of object");
    }
    if says(template, CKA_TOKEN, false) {
        return refused(CKR_TEMPLATE_INCONSISTENT, "keys of a group are on the token: CKA_TOKEN has to be true");
    }
    Ok(())
}

fn says(template: &[Attribute], kind: CK_ATTRIBUTE_TYPE, truth: bool) -> bool {
    value(template, kind).is_some_and(|value| value.iter().any(|byte| *byte != 0) == truth)
}

fn check_private(template: &[Attribute]) -> Result<(), Unwanted> {
    if value(template, CKA_TOKEN).is_none() {
        return refused(CKR_TEMPLATE_INCOMPLETE, "without CKA_TOKEN the host wants a key of its session alone");
    }
    for (kind, truth, reason) in [
        (CKA_EXTRACTABLE, true, "nobody has the key, so nobody can extract it"),
        (CKA_SENSITIVE, false, "nobody has the key, so nobody can read it"),
        (CKA_SIGN, false, "the keys sign, and do nothing else"),
        (CKA_ALWAYS_AUTHENTICATE, true, "there is no login for each signature"),
    ] {
        if says(template, kind, truth) {
            return refused(CKR_TEMPLATE_INCONSISTENT, reason);
        }
    }
    Ok(())
}

fn modulus_bits(bits: Option<&[u8]>, exponent: Option<&[u8]>) -> Result<usize, Unwanted> {
    let Some(bits) = bits else {
        return refused(CKR_TEMPLATE_INCOMPLETE, "the template has no CKA_MODULUS_BITS");
    };
    let bits = bits.try_into().map(CK_ULONG::from_ne_bytes).unwrap_or_default();
    let bits = match bits {
        2048 => 2048,
        3072 => 3072,
        4096 => 4096,
        _ => {
            return refused(
                CKR_ATTRIBUTE_VALUE_INVALID,
                format!("keys of RSA have 2048, 3072 or 4096 bits, not {bits}"),
            );
        }
    };
    let significant = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
    let own = significant(&PUBLIC_EXPONENT.to_be_bytes());
    if exponent.is_some_and(|exponent| significant(exponent) != own) {
        return refused(CKR_ATTRIBUTE_VALUE_INVALID, format!("keys of RSA have the exponent {PUBLIC_EXPONENT}"));
    }
    Ok(bits)
}

/// The suite of a curve. Its parameters are an object identifier or a name (PKCS#11 3.0, section 2.3.5).
fn curve(kind: CK_ULONG, parameters: Option<&[u8]>) -> Result<Suite, Unwanted> {
    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    const SECP256K1: &[u8] = &[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a];
    const ED25519: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
    // The identifier that was used before RFC 8410, and by GnuTLS and OpenSC still is.
    const ED25519_BEFORE: &[u8] = &[0x06, 0x09, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
    const ED25519_NAME: &[u8] = b"\x13\x0cedwards25519";
    let Some(parameters) = parameters else {
        return refused(CKR_TEMPLATE_INCOMPLETE, "the template has no CKA_EC_PARAMS");
    };
    match (kind, parameters) {
        (CKK_EC, P256) => Ok(Suite::EcdsaP256),
        (CKK_EC, SECP256K1) => Ok(Suite::EcdsaSecp256k1),
        (CKK_EC_EDWARDS, ED25519 | ED25519_BEFORE | ED25519_NAME) => Ok(Suite::FrostEd25519),
        _ => {
            let shown = hex::encode(parameters.get(..32).unwrap_or(parameters));
            refused(CKR_CURVE_NOT_SUPPORTED, format!("there are P-256, secp256k1 and Ed25519, and no curve {shown}"))
        }
    }
}

/// As what the host will look for the object.
fn shown(template: &[Attribute]) -> Result<Shown, Unwanted> {
    Ok(Shown {
        id: value(template, CKA_ID).map(id).transpose()?,
        label: value(template, CKA_LABEL).map(label).transpose()?,
    })
}

/// A `CKA_ID` of a host's.
pub(crate) fn id(value: &[u8]) -> Result<Vec<u8>, Unwanted> {
    if value.len() > MOST {
        return refused(CKR_ATTRIBUTE_VALUE_INVALID, format!("a CKA_ID has at most {MOST} bytes"));
    }
    Ok(value.to_vec())
}

/// A label of a host's.
pub(crate) fn label(value: &[u8]) -> Result<String, Unwanted> {
    match std::str::from_utf8(value) {
        Ok(label) if value.len() <= MOST => Ok(label.to_owned()),
        _ => refused(CKR_ATTRIBUTE_VALUE_INVALID, format!("a label is a text in UTF-8 of at most {MOST} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

    fn attribute(kind: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Attribute {
        Attribute { kind, value: value.to_vec() }
    }

    fn ask(mechanism: CK_MECHANISM_TYPE, public: &[Attribute], private: &[Attribute]) -> Result<Wanted, CK_RV> {
        let private = [&[attribute(CKA_TOKEN, &[1])], private].concat();
        let mechanism = Mechanism { kind: mechanism, parameters: Vec::new() };
        wanted(&mechanism, public, &private).map_err(|(refusal, _)| refusal.0)
    }

    #[test]
    fn mechanisms_and_curves_have_their_suites() {
        let curve = |mechanism, parameters: &[u8]| {
            ask(mechanism, &[attribute(CKA_EC_PARAMS, parameters)], &[]).map(|wanted| wanted.suite)
        };
        assert_eq!(curve(CKM_EC_KEY_PAIR_GEN, P256), Ok(Suite::EcdsaP256));
        assert_eq!(curve(CKM_EC_KEY_PAIR_GEN, &[6, 5, 0x2b, 0x81, 4, 0, 0x0a]), Ok(Suite::EcdsaSecp256k1));
        for mechanism in [CKM_EC_EDWARDS_KEY_PAIR_GEN, CKM_EDDSA] {
            for parameters in [&[6, 3, 0x2b, 0x65, 0x70][..], b"\x13\x0cedwards25519"] {
                assert_eq!(curve(mechanism, parameters), Ok(Suite::FrostEd25519));
            }
            assert_eq!(curve(mechanism, P256), Err(CKR_CURVE_NOT_SUPPORTED));
        }
        assert_eq!(curve(CKM_EC_KEY_PAIR_GEN, &[6, 3, 0x2b, 0x65, 0x70]), Err(CKR_CURVE_NOT_SUPPORTED));
        assert_eq!(ask(CKM_EC_KEY_PAIR_GEN, &[], &[]), Err(CKR_TEMPLATE_INCOMPLETE));
        assert_eq!(ask(0x10, &[], &[]), Err(CKR_MECHANISM_INVALID));
    }

    #[test]
    fn keys_of_rsa_have_three_lengths_and_one_exponent() {
        let rsa = |bits: CK_ULONG, exponent: &[u8]| {
            let public = [attribute(CKA_MODULUS_BITS, &bits.to_ne_bytes()), attribute(CKA_PUBLIC_EXPONENT, exponent)];
            ask(CKM_RSA_PKCS_KEY_PAIR_GEN, &public, &[]).map(|wanted| (wanted.suite, wanted.modulus_bits))
        };
        for exponent in [&[1, 0, 1][..], &[0, 1, 0, 1]] {
            assert_eq!(rsa(2048, exponent), Ok((Suite::Sh00Pkcs1Sha256, Some(2048))));
        }
        assert_eq!(rsa(1024, &[1, 0, 1]), Err(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(rsa(2048, &[3]), Err(CKR_ATTRIBUTE_VALUE_INVALID));
    }

    #[test]
    fn what_no_key_of_a_group_can_be_is_refused() {
        let curve = [attribute(CKA_EC_PARAMS, P256)];
        for (kind, value) in [(CKA_EXTRACTABLE, 1), (CKA_SENSITIVE, 0), (CKA_SIGN, 0), (CKA_ALWAYS_AUTHENTICATE, 1)] {
            let refused = ask(CKM_EC_KEY_PAIR_GEN, &curve, &[attribute(kind, &[value])]);
            assert_eq!(refused, Err(CKR_TEMPLATE_INCONSISTENT), "{kind:#x}");
            assert!(ask(CKM_EC_KEY_PAIR_GEN, &curve, &[attribute(kind, &[1 - value])]).is_ok(), "{kind:#x}");
        }
        let of_session = [&curve[..], &[attribute(CKA_TOKEN, &[0])]].concat();
        assert_eq!(ask(CKM_EC_KEY_PAIR_GEN, &of_session, &[]), Err(CKR_TEMPLATE_INCONSISTENT));
        let other = [attribute(CKA_KEY_TYPE, &CKK_RSA.to_ne_bytes())];
        assert_eq!(ask(CKM_EC_KEY_PAIR_GEN, &curve, &other), Err(CKR_TEMPLATE_INCONSISTENT));
        let bare = wanted(&Mechanism { kind: CKM_EC_KEY_PAIR_GEN, parameters: Vec::new() }, &curve, &[]);
        assert_eq!(bare.unwrap_err().0, Refusal(CKR_TEMPLATE_INCOMPLETE));
    }

    #[test]
    fn ids_and_labels_are_of_both_unless_said_otherwise() {
        let public = [attribute(CKA_EC_PARAMS, P256), attribute(CKA_LABEL, b"zone")];
        let made = ask(CKM_EC_KEY_PAIR_GEN, &public, &[attribute(CKA_ID, &[7; 20])]).unwrap();
        let both = Shown { id: Some(vec![7; 20]), label: Some("zone".to_owned()) };
        assert_eq!((&made.public, &made.private), (&both, &both));
        let own = ask(CKM_EC_KEY_PAIR_GEN, &public, &[attribute(CKA_LABEL, b"key")]).unwrap();
        assert_eq!((own.public.label.as_deref(), own.private.label.as_deref()), (Some("zone"), Some("key")));
        assert_eq!(
            ask(CKM_EC_KEY_PAIR_GEN, &public, &[attribute(CKA_LABEL, &[0xff])]),
            Err(CKR_ATTRIBUTE_VALUE_INVALID)
        );
        assert_eq!(
            ask(CKM_EC_KEY_PAIR_GEN, &public, &[attribute(CKA_ID, &[0; 1025])]),
            Err(CKR_ATTRIBUTE_VALUE_INVALID)
        );
    }
}
