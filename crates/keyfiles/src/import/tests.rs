//! Keys that the real `openssl` and `ssh-keygen` made.

use std::path::Path;
use std::process::Command;

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_groups::Secret;
use theta_sharing::Threshold;

use super::{ImportError, KeyFormat, import_key};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, TypedKeyShare, TypedPublicKey};
use theta_schemes::signatures::frost::{Ed25519Sha512, SigningPackage, aggregate, commit, sign};

type Imported = Result<(AnyPublicKey, Vec<AnyKeyShare>), ImportError>;

fn import(suite: Suite, format: KeyFormat, file: &[u8]) -> Imported {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    import_key(suite, format, &Secret::new(file.to_vec()), Threshold::new(2, 3).unwrap(), &mut rng)
}

fn auto(suite: Suite, file: &[u8]) -> Imported {
    import(suite, KeyFormat::Auto, file)
}

fn suite(name: &str) -> Suite {
    name.parse().unwrap()
}

/// Runs a command in a folder and returns what it prints.
fn run(dir: &Path, command: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(command).args(arguments).current_dir(dir).output().expect("the command is installed");
    assert!(output.status.success(), "{command} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn openssl(dir: &Path, arguments: &str) -> Vec<u8> {
    run(dir, "openssl", &arguments.split(' ').collect::<Vec<_>>())
}

/// A signature of the imported key by parties 1 and 3.
fn ed25519_signature(imported: &(AnyPublicKey, Vec<AnyKeyShare>), message: &[u8]) -> Vec<u8> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let TypedPublicKey::Ed25519(public) = imported.0.typed() else { panic!("not Ed25519") };
    let [TypedKeyShare::Ed25519(first), _, TypedKeyShare::Ed25519(third)] = [0, 1, 2].map(|i| imported.1[i].typed())
    else {
        panic!("not Ed25519");
    };
    let keys = [first, third];
    let (nonces, commitments): (Vec<_>, Vec<_>) = keys.iter().map(|key| commit::<Ed25519Sha512>(key, &mut rng)).unzip();
    let package = SigningPackage::new(public, commitments, message).unwrap();
    let shares: Vec<_> =
        nonces.into_iter().zip(keys).map(|(nonces, key)| sign(&package, nonces, key).unwrap()).collect();
    aggregate(public, &package, &shares, &mut rng).unwrap().encode()
}

#[test]
fn seeds_of_rfc_8032() {
    let cases = [
        (
            "frost-ed25519",
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ),
        (
            "frost-ed448",
            "6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b",
            "5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180",
        ),
    ];
    for (name, seed, public) in cases {
        let suite = suite(name);
        for file in [seed.as_bytes().to_vec(), format!("0x{seed}\n").into_bytes(), hex::decode(seed).unwrap()] {
            let (key, shares) = import(suite, KeyFormat::Seed, &file).unwrap();
            assert_eq!(hex::encode(key.public_key_bytes()), public);
            assert_eq!(shares.len(), 3);
            assert_eq!(auto(suite, &file).unwrap_err(), ImportError::Ambiguous);
        }
    }
    let other = import(suite("sg02-ristretto255"), KeyFormat::Seed, &[7; 32]).unwrap_err();
    assert_eq!(other, ImportError::NoSeeds(suite("sg02-ristretto255")));
    assert!(matches!(
        import(suite("frost-ed25519"), KeyFormat::Seed, &[7; 31]),
        Err(ImportError::Length { expected: 32, got: 31, .. })
    ));
}

#[test]
fn an_ed25519_key_of_openssl_signs_as_before() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm ed25519 -out key.pem");
    openssl(dir.path(), "pkey -in key.pem -pubout -out public.pem");
    let der = openssl(dir.path(), "pkey -in key.pem -outform DER");
    let pem = std::fs::read(dir.path().join("key.pem")).unwrap();
    for (format, file) in [(KeyFormat::Auto, &pem), (KeyFormat::Auto, &der), (KeyFormat::Pkcs8, &der)] {
        let imported = import(Suite::FrostEd25519, format, file).unwrap();
        std::fs::write(dir.path().join("message"), b"the message").unwrap();
        std::fs::write(dir.path().join("signature"), ed25519_signature(&imported, b"the message")).unwrap();
        openssl(dir.path(), "pkeyutl -verify -rawin -pubin -inkey public.pem -in message -sigfile signature");
    }
    let openssh = import(Suite::FrostEd25519, KeyFormat::OpenSsh, &pem).unwrap_err();
    assert_eq!(openssh, ImportError::OtherFormat { asked: KeyFormat::OpenSsh, found: KeyFormat::Pkcs8 });
    let public = auto(Suite::FrostEd25519, &std::fs::read(dir.path().join("public.pem")).unwrap());
    assert_eq!(public.unwrap_err(), ImportError::NotPrivate);

    openssl(dir.path(), "pkey -in key.pem -aes256 -passout pass:x -out encrypted.pem");
    let encrypted = auto(Suite::FrostEd25519, &std::fs::read(dir.path().join("encrypted.pem")).unwrap());
    assert!(encrypted.unwrap_err().to_string().contains("openssl pkey"));
}

#[test]
fn an_ed448_key_of_openssl_keeps_its_public_key() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm ed448 -out key.pem");
    let public = openssl(dir.path(), "pkey -in key.pem -pubout -outform DER");
    let pem = std::fs::read(dir.path().join("key.pem")).unwrap();
    let (key, _) = auto(Suite::FrostEd448, &pem).unwrap();
    assert!(public.ends_with(key.public_key_bytes()));
    let ImportError::OtherSuite { remedy, .. } = auto(Suite::FrostEd25519, &pem).unwrap_err() else { panic!() };
    assert_eq!(remedy, "import them into frost-ed448");
}

#[test]
fn ssh_keys_sign_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let keygen =
        |arguments: &[&str]| run(dir.path(), "ssh-keygen", &[&["-q", "-t", "ed25519", "-f"], arguments].concat());
    for comment in ["", "a", "someone@somewhere", "1234567"] {
        let name = format!("key{}", comment.len());
        keygen(&[&name, "-N", "", "-C", comment]);
        let file = std::fs::read(dir.path().join(&name)).unwrap();
        let imported = auto(Suite::FrostEd25519, &file).unwrap();
        let public = std::fs::read_to_string(dir.path().join(format!("{name}.pub"))).unwrap();
        let blob = public.split(' ').nth(1).unwrap();
        let blob = <base64ct::Base64 as base64ct::Encoding>::decode_vec(blob.trim()).unwrap();
        assert!(blob.ends_with(imported.0.public_key_bytes()));
        let theirs = ed25519_dalek::VerifyingKey::from_bytes(blob[blob.len() - 32..].try_into().unwrap()).unwrap();
        let signature = ed25519_signature(&imported, b"m");
        theirs.verify_strict(b"m", &ed25519_dalek::Signature::from_slice(&signature).unwrap()).unwrap();
        assert_eq!(auto(Suite::FrostEd25519, public.as_bytes()).unwrap_err(), ImportError::NotPrivate);
    }
    keygen(&["locked", "-N", "a passphrase"]);
    let locked = auto(Suite::FrostEd25519, &std::fs::read(dir.path().join("locked")).unwrap()).unwrap_err();
    assert!(locked.to_string().contains("ssh-keygen -p -N \"\""), "{locked}");
    run(dir.path(), "ssh-keygen", &["-q", "-t", "ecdsa", "-f", "ecdsa", "-N", ""]);
    let ecdsa = auto(Suite::FrostEd25519, &std::fs::read(dir.path().join("ecdsa")).unwrap()).unwrap_err();
    assert!(matches!(&ecdsa, ImportError::Algorithm(name) if name.contains("ecdsa-sha2-nistp256")), "{ecdsa}");
}

/// An Ed25519 key of OpenSSH, its Base64 undone.
fn openssh_bytes() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "ssh-keygen", &["-q", "-t", "ed25519", "-f", "key", "-N", "", "-C", "c"]);
    let text = std::fs::read_to_string(dir.path().join("key")).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    <base64ct::Base64 as base64ct::Encoding>::decode_vec(&digits).unwrap()
}

#[test]
fn damaged_ssh_keys_are_refused() {
    let good = openssh_bytes();
    let wrap = |bytes: &[u8]| {
        let digits = <base64ct::Base64 as base64ct::Encoding>::encode_string(bytes);
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{digits}\n-----END OPENSSH PRIVATE KEY-----\n").into_bytes()
    };
    auto(Suite::FrostEd25519, &wrap(&good)).unwrap();
    // The comment is the one part that nothing else is checked against: "c" before the padding.
    let comment = good.iter().rposition(|byte| *byte == b'c').unwrap();
    for position in (0..good.len()).filter(|position| *position != comment) {
        let mut bad = good.clone();
        bad[position] ^= 1;
        assert!(auto(Suite::FrostEd25519, &wrap(&bad)).is_err(), "byte {position}");
        assert!(auto(Suite::FrostEd25519, &wrap(&good[..position])).is_err(), "length {position}");
    }
    assert!(auto(Suite::FrostEd25519, &wrap(&[&good[..], &[0]].concat())).is_err());
}

#[test]
fn damaged_pkcs8_is_refused_without_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm ed25519 -out key.pem");
    let der = openssl(dir.path(), "pkey -in key.pem -outform DER");
    for len in 0..der.len() {
        assert!(import(Suite::FrostEd25519, KeyFormat::Pkcs8, &der[..len]).is_err(), "{len}");
    }
    assert!(import(Suite::FrostEd25519, KeyFormat::Pkcs8, &[&der[..], &[0]].concat()).is_err());
    for position in 0..der.len() {
        for bit in 0..8 {
            let mut bad = der.clone();
            bad[position] ^= 1 << bit;
            // The seed is the end; what stands before it is fixed, but for the version.
            let imported = import(Suite::FrostEd25519, KeyFormat::Pkcs8, &bad);
            assert_eq!(imported.is_ok(), position >= der.len() - 32, "byte {position}, bit {bit}");
        }
    }
    for text in
        ["", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n*\n-----END PRIVATE KEY-----"]
    {
        assert!(auto(Suite::FrostEd25519, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn bare_scalars() {
    let one = hex::encode([&[1][..], &[0; 31]].concat());
    for suite in [Suite::FrostEd25519, Suite::Sg02Ristretto255] {
        let (key, _) = import(suite, KeyFormat::Raw, one.as_bytes()).unwrap();
        assert_eq!(key.suite(), suite);
    }
    assert!(auto(Suite::Sg02Ristretto255, one.as_bytes()).is_ok());
    assert_eq!(auto(Suite::Sg02Ristretto255, &[1; 7]).unwrap_err(), ImportError::Unrecognised);
    for bad in [[0; 32], [0xff; 32]] {
        assert!(matches!(import(Suite::FrostEd25519, KeyFormat::Raw, &bad), Err(ImportError::Deal(_))));
    }
    assert!(matches!(import(Suite::Sh00Pkcs1Sha256, KeyFormat::Raw, &[1; 32]), Err(ImportError::Deal(_))));
}

#[test]
fn ec_keys_fit_their_own_suites_alone() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "ecparam -name prime256v1 -genkey -out p256.pem");
    openssl(dir.path(), "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -out secp256k1.pem");
    openssl(dir.path(), "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out p384.pem");
    for (file, names) in [("p256", &["frost-p256"][..]), ("secp256k1", &["frost-secp256k1", "frost-secp256k1-tr"])] {
        let pem = std::fs::read(dir.path().join(format!("{file}.pem"))).unwrap();
        assert!(matches!(auto(Suite::FrostEd25519, &pem), Err(ImportError::OtherSuite { .. })));
        let compressed = openssl(dir.path(), &format!("ec -in {file}.pem -pubout -conv_form compressed -outform DER"));
        let der = openssl(dir.path(), &format!("pkey -in {file}.pem -outform DER"));
        for suite in names.iter().filter_map(|name| name.parse::<Suite>().ok()) {
            for file in [&pem, &der] {
                let (key, _) = auto(suite, file).unwrap();
                assert!(compressed.ends_with(key.public_key_bytes()), "{suite}");
            }
        }
    }
    let other = auto(Suite::FrostEd25519, &std::fs::read(dir.path().join("p384.pem")).unwrap()).unwrap_err();
    assert!(matches!(other, ImportError::Algorithm(_)), "{other}");
}

#[test]
fn rsa_keys_must_have_safe_primes() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out key.pem");
    openssl(dir.path(), "rsa -traditional -in key.pem -out old.pem");
    openssl(dir.path(), "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out short.pem");
    openssl(
        dir.path(),
        "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3 -out three.pem",
    );
    let imported = |name: &str, suite| auto(suite, &std::fs::read(dir.path().join(name)).unwrap()).unwrap_err();
    assert_eq!(imported("key.pem", Suite::Sh00Pkcs1Sha256), ImportError::RsaPrimes);
    assert_eq!(imported("old.pem", Suite::Sh00PssSha256), ImportError::RsaPrimes);
    assert_eq!(imported("short.pem", Suite::Sh00PssSha256), ImportError::RsaSize(1024));
    assert_eq!(imported("three.pem", Suite::Sh00PssSha256), ImportError::RsaExponent);
    assert!(matches!(imported("key.pem", Suite::FrostEd25519), ImportError::OtherSuite { .. }));
}

/// Of the primes of `openssl prime -generate -safe -bits 1024`, put together with `openssl asn1parse -genconf`.
#[test]
fn an_rsa_key_with_safe_primes_signs_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let pem = include_bytes!("safe_primes.pem");
    std::fs::write(dir.path().join("key.pem"), pem).unwrap();
    openssl(dir.path(), "pkey -in key.pem -check -noout");
    openssl(dir.path(), "pkey -in key.pem -pubout -out public.pem");
    let (key, shares) = auto(Suite::Sh00Pkcs1Sha256, pem).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let statement = theta_schemes::Statement::Sign(b"the message");
    let parts: Vec<_> = shares[1..]
        .iter()
        .map(|share| (share.index(), key.create_share(share, statement, &mut rng).unwrap()))
        .collect();
    let parts: Vec<_> = parts.iter().map(|(index, share)| (*index, &share[..])).collect();
    let signature = key.combine(statement, &parts, &mut rng).unwrap().result;
    std::fs::write(dir.path().join("message"), b"the message").unwrap();
    std::fs::write(dir.path().join("signature"), signature.expose()).unwrap();
    openssl(dir.path(), "dgst -sha256 -verify public.pem -signature signature message");
}
