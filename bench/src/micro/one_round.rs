//! The steps of a one-round scheme.

use rand_chacha::ChaCha20Rng;
use theta::exit::Failure;
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{Purpose, Statement, ThresholdScheme, keys::Combined};

use super::{
    measure::limits::Limits,
    operation::Operation,
    record::{Bench, Subject},
};

/// The label of ciphertexts.
const LABEL: &[u8] = b"theta-bench micro";

/// Measures everything that the experiment wants.
pub(super) fn run<S: ThresholdScheme + Limits>(
    bench: &mut Bench,
    subject: &Subject<'_>,
    public: &S::PublicKey,
    key: &S::KeyShare,
) -> Result<(), Failure> {
    let mut rng = bench.generator();
    let asked = asked::<S>(bench, subject, public, &mut rng)?;
    let statement = statement(S::SUITE.purpose(), &asked);
    let request = S::parse_request(public, &statement).map_err(Failure::internal)?;
    shares::<S>(bench, subject, public, key, &request, &mut rng);
    let first: Vec<usize> = (0..subject.sizes().k).collect();
    let combined = combination::<S>(bench, subject, public, &statement, &first, Operation::Combine, &mut rng)?;
    let spread = spread(subject);
    if spread != first {
        combination::<S>(bench, subject, public, &statement, &spread, Operation::CombineSpread, &mut rng)?;
    }
    results::<S>(bench, subject, &asked, &combined, &mut rng)
}

const fn statement(purpose: Purpose, bytes: &[u8]) -> Statement<'_> {
    match purpose {
        Purpose::Decrypt => Statement::Decapsulate(bytes),
        Purpose::Sign => Statement::Sign(bytes),
        Purpose::Coin => Statement::FlipCoin(bytes),
    }
}

/// A text of this length.
fn text(bytes: u64) -> Result<Vec<u8>, Failure> {
    usize::try_from(bytes).map(|length| vec![b'7'; length]).map_err(Failure::internal)
}

/// The positions of k parties at equal distances among n.
fn spread(subject: &Subject<'_>) -> Vec<usize> {
    let sizes = subject.sizes();
    (0..sizes.k).map(|i| (2 * i + 1) * sizes.n / (2 * sizes.k)).collect()
}

/// Measures encryption and the check of the statement, and returns the statement.
fn asked<S: ThresholdScheme + Limits>(
    bench: &mut Bench,
    subject: &Subject<'_>,
    public: &S::PublicKey,
    rng: &mut ChaCha20Rng,
) -> Result<Vec<u8>, Failure> {
    let purpose = S::SUITE.purpose();
    let mut requests: Vec<(u64, Vec<u8>)> = Vec::new();
    match purpose {
        Purpose::Decrypt => {
            for bytes in &subject.experiment.payloads {
                let plaintext = text(*bytes)?;
                let mut encrypt = || subject.public.encrypt(&plaintext, LABEL, Aead::default(), rng);
                let ciphertext = encrypt().map_err(Failure::internal)?;
                if subject.experiment.wants(Operation::Encrypt) {
                    let timing = bench.clock.repeat(encrypt);
                    bench.record::<S>(subject, Operation::Encrypt, Some(*bytes), ciphertext.len(), timing);
                }
                let (header, _) = split_ciphertext(&ciphertext).map_err(Failure::internal)?;
                requests.push((*bytes, header.to_vec()));
            }
            // Only the encryptor and the decryptor handle the payload.
            requests.truncate(1);
        }
        Purpose::Sign => {
            for bytes in &subject.experiment.messages {
                requests.push((*bytes, text(*bytes)?));
            }
        }
        Purpose::Coin => requests.push((32, vec![7; 32])),
    }
    for (bytes, request) in &requests {
        if subject.experiment.wants(Operation::CheckRequest) {
            let statement = statement(purpose, request);
            let timing = bench.clock.repeat(|| S::parse_request(public, &statement));
            bench.record::<S>(subject, Operation::CheckRequest, Some(*bytes), 0, timing);
        }
    }
    let nothing = || Failure::Usage("the experiment has no payload or message for this suite".to_owned());
    requests.into_iter().next().map(|(_, request)| request).ok_or_else(nothing)
}

/// Measures making a share and decoding one.
fn shares<S: ThresholdScheme + Limits>(
    bench: &mut Bench,
    subject: &Subject<'_>,
    public: &S::PublicKey,
    key: &S::KeyShare,
    request: &S::Request,
    rng: &mut ChaCha20Rng,
) {
    let bare = S::create_bare_share(public, key, request, rng);
    if !S::is_proven(&bare) && subject.experiment.wants(Operation::BareShare) {
        let timing = bench.clock.repeat(|| S::encode_share(&S::create_bare_share(public, key, request, rng)));
        bench.record::<S>(subject, Operation::BareShare, None, S::encode_share(&bare).len(), timing);
    }
    let share = S::create_share(public, key, request, rng);
    let encoded = S::encode_share(&share);
    if subject.experiment.wants(Operation::CreateShare) {
        let timing = bench.clock.repeat(|| S::encode_share(&S::create_share(public, key, request, rng)));
        bench.record::<S>(subject, Operation::CreateShare, None, encoded.len(), timing);
    }
    if subject.experiment.wants(Operation::DecodeShare) {
        let timing = bench.clock.repeat(|| S::decode_share(S::share_index(&share), &encoded));
        bench.record::<S>(subject, Operation::DecodeShare, None, 0, timing);
    }
    if subject.experiment.wants(Operation::VerifyShare) {
        let one = [share];
        let timing = bench.clock.repeat(|| S::verify_shares(public, request, &one, rng));
        bench.record::<S>(subject, Operation::VerifyShare, None, 0, timing);
    }
}

/// Measures verifying and combining the shares of some parties, and returns the result.
fn combination<S: ThresholdScheme + Limits>(
    bench: &mut Bench,
    subject: &Subject<'_>,
    public: &S::PublicKey,
    statement: &Statement<'_>,
    positions: &[usize],
    operation: Operation,
    rng: &mut ChaCha20Rng,
) -> Result<Combined, Failure> {
    let request = S::parse_request(public, statement).map_err(Failure::internal)?;
    let mut encoded = Vec::with_capacity(positions.len());
    for key in positions.iter().filter_map(|position| subject.shares.get(*position)) {
        let share = subject.public.create_share(key, *statement, rng).map_err(Failure::internal)?;
        encoded.push((key.index(), share));
    }
    let decoded = encoded.iter().map(|(index, bytes)| S::decode_share(*index, bytes));
    let shares = decoded.collect::<Result<Vec<_>, _>>().map_err(Failure::internal)?;
    if operation == Operation::Combine && subject.experiment.wants(Operation::VerifyShares) {
        let timing = bench.clock.repeat(|| S::verify_shares(public, &request, &shares, rng));
        bench.record::<S>(subject, Operation::VerifyShares, None, 0, timing);
    }
    let bytes: Vec<_> = encoded.iter().map(|(index, bytes)| (*index, bytes.as_slice())).collect();
    let combined = subject.public.combine(*statement, &bytes, rng).map_err(Failure::internal)?;
    if subject.experiment.wants(operation) {
        let timing = bench.clock.repeat(|| S::combine(public, &request, &shares));
        let length = combined.result.expose().len() + combined.proof.len();
        bench.record::<S>(subject, operation, None, length, timing);
    }
    Ok(combined)
}

/// Measures what is done with a result.
fn results<S: ThresholdScheme + Limits>(
    bench: &mut Bench,
    subject: &Subject<'_>,
    asked: &[u8],
    combined: &Combined,
    rng: &mut ChaCha20Rng,
) -> Result<(), Failure> {
    if S::SUITE.purpose() != Purpose::Decrypt {
        let (result, proof) = (combined.result.expose(), &combined.proof);
        subject.public.verify(asked, result, proof).map_err(Failure::internal)?;
        if subject.experiment.wants(Operation::VerifyResult) {
            let timing = bench.clock.repeat(|| subject.public.verify(asked, result, proof));
            let bytes = u64::try_from(asked.len()).ok();
            bench.record::<S>(subject, Operation::VerifyResult, bytes, 0, timing);
        }
        return Ok(());
    }
    if !subject.experiment.wants(Operation::Decrypt) {
        return Ok(());
    }
    for bytes in &subject.experiment.payloads {
        let ciphertext =
            subject.public.encrypt(&text(*bytes)?, LABEL, Aead::default(), rng).map_err(Failure::internal)?;
        let (header, _) = split_ciphertext(&ciphertext).map_err(Failure::internal)?;
        let shares = subject.shares.iter().take(subject.sizes().k);
        let shares = shares
            .map(|key| Ok((key.index(), subject.public.create_share(key, Statement::Decapsulate(header), rng)?)))
            .collect::<Result<Vec<_>, theta_schemes::keys::SchemeError>>()
            .map_err(Failure::internal)?;
        let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, share.as_slice())).collect();
        let combined =
            subject.public.combine(Statement::Decapsulate(header), &shares, rng).map_err(Failure::internal)?;
        let key = PayloadKey::from_bytes(combined.result.expose()).map_err(Failure::internal)?;
        open_bytes(&key, &ciphertext).map_err(Failure::internal)?;
        let timing = bench.clock.repeat(|| open_bytes(&key, &ciphertext));
        let length = usize::try_from(*bytes).unwrap_or(usize::MAX);
        bench.record::<S>(subject, Operation::Decrypt, Some(*bytes), length, timing);
    }
    Ok(())
}
