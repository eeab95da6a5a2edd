//! Private keys in other programs' formats: whatever imports is a key whose files read back as the same key, and one file
//! always gives the same public key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{plant, rng};
use theta_groups::Secret;
use theta_keyfiles::{KeyFormat, KeyShareText as _, PublicKeyText as _, import_key};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};
use theta_sharing::Threshold;

/// One suite for each kind of key except RSA, whose checks would take all the time.
const SUITES: [Suite; 10] = [
    Suite::FrostEd25519,
    Suite::FrostEd448,
    Suite::FrostP256,
    Suite::FrostSecp256k1,
    Suite::FrostSecp256k1Tr,
    Suite::FrostRistretto255,
    Suite::EcdsaP256,
    Suite::EcdsaSecp256k1,
    Suite::Bls04MinPk,
    Suite::Sg02P256,
];

fuzz_target!(init: plant("key_import", seeds()), |input: &[u8]| {
    let Some((first, file)) = input.split_first() else { return };
    let (suite, format) = (usize::from(*first) % SUITES.len(), usize::from(*first) / SUITES.len());
    check(SUITES[suite], KeyFormat::ALL[format % KeyFormat::ALL.len()], file);
});

fn check(suite: Suite, format: KeyFormat, file: &[u8]) {
    let threshold = Threshold::new(2, 3).expect("2 of 3");
    let import = || import_key(suite, format, &Secret::new(file.to_vec()), threshold, &mut rng());
    let (public, shares) = match import() {
        Ok(imported) => imported,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    assert_eq!(public.suite(), suite);
    assert_eq!(import().expect("the same file").0, public);
    let name: KeyName = "name".parse().expect("a name");
    assert_eq!(AnyPublicKey::from_text(&public.to_text(&name)), Ok((name.clone(), public.clone())));
    for share in shares {
        let (_, same) = AnyKeyShare::from_text(share.to_text(&name).expose(), &public).expect("our own file");
        assert_eq!(same.index(), share.index());
    }
}

/// Keys that `openssl genpkey` and `ssh-keygen` made for this purpose only, and bare ones; each for every suite and format.
fn seeds() -> Vec<Vec<u8>> {
    let files: [&[u8]; 10] = [
        include_bytes!("../keys/ed25519.pem"),
        include_bytes!("../keys/ed25519.der"),
        include_bytes!("../keys/ed448.pem"),
        include_bytes!("../keys/p256.pem"),
        include_bytes!("../keys/secp256k1.pem"),
        include_bytes!("../keys/openssh"),
        // RFC 8037, appendix A.
        br#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}"#,
        &[7; 32],
        &[7; 57],
        b"0x0707070707070707070707070707070707070707070707070707070707070707",
    ];
    let combinations = u8::try_from(SUITES.len() * KeyFormat::ALL.len()).expect("few");
    files.iter().flat_map(|file| (0..combinations).map(move |first| [&[first], *file].concat())).collect()
}
