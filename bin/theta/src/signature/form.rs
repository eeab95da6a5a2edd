//! The two ways of writing a signature of ECDSA.

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
}

fn has_forms(suite: Suite) -> bool {
    suite.scheme() == "ECDSA"
}

/// Refuses a form for signatures that have one alone.
pub(super) fn check(form: Option<Form>, suite: Suite) -> Result<(), Failure> {
    if form.is_none() || has_forms(suite) {
        Ok(())
    } else {
        Err(Failure::Usage(format!(
            "signatures of {suite} have one form: leave out --format, which is for ECDSA (ecdsa-...)"
        )))
    }
}

/// A result in the form that was asked for.
pub(super) fn written(form: Option<Form>, result: &[u8]) -> Result<Vec<u8>, Failure> {
    match form {
        None | Some(Form::Raw) => Ok(result.to_vec()),
        Some(Form::Der) => {
            to_der(result).ok_or_else(|| Failure::internal("a signature of ECDSA that is not r and s of 32 bytes"))
        }
    }
}

/// Verifies a signature in whichever form. A few bytes may be a signature in both, so that both are tried.
pub(super) fn verify_any(
    suite: Suite,
    signature: &[u8],
    verify: impl Fn(&[u8]) -> Result<(), SchemeError>,
) -> Result<(), SchemeError> {
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
        }
        let refused = check(Some(Form::Raw), Suite::Bls04MinPk).unwrap_err().to_string();
        assert!(refused.contains("leave out --format"), "{refused}");
    }

    #[test]
    fn either_form_is_verified() {
        let raw = [7; 64];
        let der = written(Some(Form::Der), &raw).unwrap();
        assert_eq!((der.len(), written(Some(Form::Raw), &raw).unwrap()), (70, raw.to_vec()));
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
    }
}
