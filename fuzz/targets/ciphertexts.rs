//! Ciphertexts, headers and payload keys: what the parser returns agrees with the bytes, no changed header is answered, and
//! no changed payload is opened.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{SAMPLES, choose, plant, seeds_by_sample};
use theta_payload::{Aead, Header, PayloadKey, open_bytes, read_header, split_ciphertext};
use theta_schemes::{Purpose, Statement, StatementBytes};

fuzz_target!(init: plant("ciphertexts", seeds()), |input: &[u8]| {
    let Some((sample, bytes)) = choose(input) else { return };
    let split = split_ciphertext(bytes);
    assert_eq!(read_header(bytes).ok().as_deref(), split.as_ref().ok().map(|(header, _)| *header));
    let Ok((header, payload)) = split else { return };
    assert_eq!([header, payload].concat(), bytes);
    if let Ok(parsed) = Header::parse(header) {
        check_header(&parsed, header);
    }
    for sample in SAMPLES.iter().filter(|sample| sample.public.suite().purpose() == Purpose::Decrypt) {
        if sample.public.check_request(Statement::Decapsulate(header)).is_ok() {
            // Changing bytes does not make another valid header.
            assert_eq!(StatementBytes::Decapsulate(header.to_vec().into()).as_statement().bytes(), known(sample));
        }
    }
    if let Ok(key) = PayloadKey::from_bytes(&sample.result)
        && let Ok(plaintext) = open_bytes(&key, bytes)
    {
        assert_eq!(plaintext.expose(), &sample.plaintext);
    }
});

fn known(sample: &theta_fuzz::Sample) -> &[u8] {
    match &sample.statement {
        StatementBytes::Decapsulate(header) => header,
        StatementBytes::Sign(_) | StatementBytes::FlipCoin(_) => &[],
    }
}

/// Encodes the envelope from the parser's result as `spec/payload.md` says, and compares.
fn check_header(parsed: &Header<'_>, header: &[u8]) {
    let four = |len: usize| u32::try_from(len).expect("short").to_be_bytes();
    let aead = if parsed.aead() == Aead::default() { 1 } else { 2 };
    let envelope = [
        b"theta\x02",
        &four(header.len())[..],
        &[header[10], aead],
        parsed.key_id().as_bytes(),
        &parsed.payload().plaintext_len().to_be_bytes(),
        &header[52..84],
        &four(parsed.label().len()),
        parsed.label().bytes(),
    ]
    .concat();
    assert!(header.starts_with(&envelope));
}

fn seeds() -> Vec<Vec<u8>> {
    seeds_by_sample(|sample| {
        let whole = Some(&sample.ciphertext).filter(|bytes| !bytes.is_empty());
        whole.into_iter().cloned().collect()
    })
}
