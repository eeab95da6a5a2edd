//! The ways of writing a signature of ECDSA.

use clap::ValueEnum;
use theta_schemes::{
    Suite,
    keys::SchemeError,
    signatures::ecdsa::{from_der, to_der},
};

use crate::exit::Failure;

/// How a signature of ECDSA is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// r and s, 32 bytes each, as JOSE, Bitcoin and Ethereum libraries and the nodes have them
    Raw,
    /// A sequence of two numbers in DER, as OpenSSL, TLS and X.509 have it
    Der,
    /// r, s and v, 65 bytes, from which Ethereum's ecrecover finds the key (secp256k1): v is 27, and one more if the y of R is odd
    Ethereum,
}

/// The v of the first recovery id in Ethereum (yellow paper, appendix F).
const FIRST_V: u8 = 27;
/// The bytes of r and s.
const RAW_LEN: usize = 64;

fn has_forms(suite: Suite) -> bool {
    suite.scheme() == "ECDSA"
}

/// Refuses a form for signatures that have one alone.
pub(super) fn check(form: Option<Form>, suite: Suite) -> Result<(), Failure> {
    if form == Some(Form::Ethereum) && has_forms(suite) && suite != Suite::EcdsaSecp256k1 {
        return Err(Failure::Usage(format!("--format ethereum is for keys of ecdsa-secp256k1, and not of {suite}")));
    }
    if form.is_none() || has_forms(suite) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "signatures of {suite} have one form: leave out --format, which is for ECDSA (ecdsa-...)"
        )))
    }
}

/// A result in the form that was asked for.
pub(super) fn written(form: Option<Form>, result: &[u8], recovery: Option<u8>) -> Result<Vec<u8>, Failure> {
    match form {
        None | Some(Form::Raw) => Ok(result.to_vec()),
        Some(Form::Der) => {
            to_der(result).ok_or_else(|| Failure::internal("a signature of ECDSA that is not r and s of 32 bytes"))
        }
        Some(Form::Ethereum) => match recovery {
            Some(id @ 0..=1) => Ok([result, &[FIRST_V + id]].concat()),
            _ => Err(Failure::Failed("Ethereum has no form for this signature: sign something else".to_owned())),
        },
    }
}

/// Verifies a signature in whichever form. A few bytes may be a signature in both, so that both are tried.
pub(super) fn verify_any(
    suite: Suite,
    signature: &[u8],
    verify: impl Fn(&[u8]) -> Result<(), SchemeError>,
) -> Result<(), SchemeError> {
    // Whoever verifies has the key, and needs no v.
    let has_v = suite == Suite::EcdsaSecp256k1 && signature.len() == RAW_LEN + 1;
    let signature = signature.split_at_checked(RAW_LEN).filter(|_| has_v).map_or(signature, |(raw, _)| raw);
    let as_it_is = verify(signature);
    match from_der(signature).filter(|_| has_forms(suite)) {
        Some(raw) if as_it_is.is_err() => verify(&raw),
        _ => as_it_is,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use theta_schemes::VerifyError;

    use super::*;

    #[test]
    fn forms_are_for_ecdsa() {
        for suite in Suite::ALL {
            assert!(check(None, suite).is_ok());
            assert_eq!(check(Some(Form::Der), suite).is_ok(), suite.name().starts_with("ecdsa-"), "{suite}");
            assert_eq!(check(Some(Form::Ethereum), suite).is_ok(), suite == Suite::EcdsaSecp256k1, "{suite}");
        }
        let refused = check(Some(Form::Raw), Suite::Bls04MinPk).unwrap_err().to_string();
        assert!(refused.contains("leave out --format"), "{refused}");
    }

    #[test]
    fn either_form_is_verified() {
        let raw = [7; 64];
        let der = written(Some(Form::Der), &raw, None).unwrap();
        assert_eq!((der.len(), written(Some(Form::Raw), &raw, None).unwrap()), (70, raw.to_vec()));
        let with_v = written(Some(Form::Ethereum), &raw, Some(1)).unwrap();
        assert_eq!(with_v, [&raw[..], &[28]].concat());
        assert!(
            written(Some(Form::Ethereum), &raw, Some(2)).is_err() && written(Some(Form::Ethereum), &raw, None).is_err()
        );
        let tried = |suite: Suite, given: &[u8]| {
            let seen = RefCell::new(Vec::new());
            let verdict = verify_any(suite, given, |bytes| {
                seen.borrow_mut().push(bytes.to_vec());
                if bytes == raw { Ok(()) } else { Err(VerifyError::Invalid.into()) }
            });
            (verdict.is_ok(), seen.into_inner())
        };
        assert_eq!(tried(Suite::EcdsaP256, &raw), (true, vec![raw.to_vec()]));
        assert_eq!(tried(Suite::EcdsaP256, &der), (true, vec![der.clone(), raw.to_vec()]));
        assert_eq!(tried(Suite::FrostP256, &der), (false, vec![der]));
        assert!(!tried(Suite::EcdsaP256, &[8; 64]).0);
        assert_eq!(tried(Suite::EcdsaSecp256k1, &with_v), (true, vec![raw.to_vec()]));
        assert!(!tried(Suite::EcdsaP256, &with_v).0);
    }
}
