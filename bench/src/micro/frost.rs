//! The two rounds of FROST.

use theta::exit::Failure;
use theta_schemes::{
    SignatureScheme,
    keys::{CurveScheme, PublicKeySet, deal},
    signatures::frost::{self, Frost, FrostSuite, SigningCommitments, SigningPackage},
};

use super::{
    measure::{clock::Timing, limits::Limits},
    operation::Operation,
    record::{Bench, Subject},
};

/// A type in the table of suites that is a FROST suite.
pub(super) trait FrostScheme: Limits + CurveScheme {
    /// The suite.
    type Suite: FrostSuite;
}

impl<C: FrostSuite> FrostScheme for Frost<C> {
    type Suite = C;
}

/// Measures everything that the experiment wants.
pub(super) fn run<S: FrostScheme>(bench: &mut Bench, subject: &Subject<'_>) -> Result<(), Failure> {
    for bytes in &subject.experiment.messages {
        session::<S::Suite>(bench, subject, *bytes)?;
    }
    Ok(())
}

fn session<C: FrostSuite>(bench: &mut Bench, subject: &Subject<'_>, bytes: u64) -> Result<(), Failure> {
    let mut rng = bench.generator();
    let dealt = deal::<Frost<C>>(subject.public.threshold(), &mut rng);
    let public = &dealt.public;
    let message = vec![b'7'; usize::try_from(bytes).map_err(Failure::internal)?];
    let signers = || dealt.shares.iter().take(subject.sizes().k);
    let Some(key) = dealt.shares.first() else { return Err(Failure::internal("a key without shares")) };
    let (nonces, commitments): (Vec<_>, Vec<_>) = signers().map(|key| frost::commit::<C>(key, &mut rng)).unzip();
    let package = SigningPackage::new(public, commitments.clone(), &message).map_err(Failure::internal)?;
    let shares = nonces.into_iter().zip(signers()).map(|(nonces, key)| frost::sign(&package, nonces, key));
    let shares = shares.collect::<Result<Vec<_>, _>>().map_err(Failure::internal)?;
    let encoded: Vec<_> = commitments.iter().map(|commitments| (commitments.index(), commitments.encode())).collect();
    let signature = frost::aggregate(public, &package, &shares, &mut rng).map_err(Failure::internal)?.encode();
    let package_of = |list| SigningPackage::new(public, list, &message).map_err(Failure::internal);
    let mut keep = |operation, length, measured: &mut dyn FnMut(&Bench) -> Timing| {
        if subject.experiment.wants(operation) {
            let timing = measured(bench);
            bench.record::<Frost<C>>(subject, operation, Some(bytes), length, timing);
        }
    };
    let length = |encoded: &[(_, Vec<u8>)]| encoded.first().map_or(0, |(_, bytes)| bytes.len());
    keep(Operation::RoundOne, length(&encoded), &mut |bench| bench.clock.repeat(|| frost::commit::<C>(key, &mut rng)));
    keep(Operation::DecodeCommitments, 0, &mut |bench| {
        bench.clock.repeat(|| {
            let decoded = encoded.iter().map(|(index, bytes)| SigningCommitments::<C>::decode(*index, bytes));
            decoded.collect::<Result<Vec<_>, _>>()
        })
    });
    let mut others = rng.clone();
    keep(Operation::RoundTwo, shares.first().map_or(0, |share| share.encode().len()), &mut |bench| {
        // Nonces may sign only once, so each run makes its own.
        let input = || {
            let (nonces, mine) = frost::commit::<C>(key, &mut others);
            let mut list = commitments.clone();
            if let Some(first) = list.first_mut() {
                *first = mine;
            }
            (nonces, list)
        };
        bench.clock.measure(input, |(nonces, list)| {
            package_of(list).and_then(|package| frost::sign(&package, nonces, key).map_err(Failure::internal))
        })
    });
    let mut others = rng.clone();
    keep(Operation::Aggregate, signature.len(), &mut |bench| {
        bench.clock.measure(
            || commitments.clone(),
            |list| {
                let package = package_of(list)?;
                frost::aggregate(public, &package, &shares, &mut others).map_err(Failure::internal)
            },
        )
    });
    verify::<C>(public, &message, &signature)?;
    keep(Operation::VerifyResult, 0, &mut |bench| bench.clock.repeat(|| verify::<C>(public, &message, &signature)));
    Ok(())
}

fn verify<C: FrostSuite>(public: &PublicKeySet<C::Group>, message: &[u8], signature: &[u8]) -> Result<(), Failure> {
    Frost::<C>::verify(public, message, signature).map_err(Failure::internal)
}
