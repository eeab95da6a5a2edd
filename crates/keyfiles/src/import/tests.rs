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
    assert_eq!(ecdsa, ImportError::OpenSshForm("OpenSSH ECDSA"));
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
            // The seed is at the end; all bytes before it are fixed.
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
    for (file, names) in [
        ("p256", &["frost-p256", "ecdsa-p256"][..]),
        ("secp256k1", &["frost-secp256k1", "frost-secp256k1-tr", "ecdsa-secp256k1"]),
    ] {
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

/// A bare scalar is taken for all suites on its curve, and so is a key file.
#[test]
fn ec_keys_are_taken_for_every_purpose_on_their_curve() {
    let dir = tempfile::tempdir().unwrap();
    for (curve, group) in [("P-256", "p256"), ("secp256k1", "secp256k1")] {
        openssl(dir.path(), &format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:{curve} -out key.pem"));
        let pem = std::fs::read(dir.path().join("key.pem")).unwrap();
        let public = openssl(dir.path(), "ec -in key.pem -pubout -conv_form compressed -outform DER");
        let suites: Vec<Suite> = Suite::ALL.into_iter().filter(|suite| suite.group() == group).collect();
        assert!(suites.len() >= 3, "{suites:?}");
        for suite in suites {
            let (key, _) = auto(suite, &pem).unwrap();
            assert!(public.ends_with(key.public_key_bytes()), "{suite}");
        }
        let error = auto("sg02-ristretto255".parse().unwrap(), &pem).unwrap_err().to_string();
        assert!(error.contains(&format!("cks05-{group}")) && error.contains(&format!("sg02-{group}")), "{error}");
    }
}

#[test]
fn of_two_private_keys_none_is_guessed() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "genpkey -algorithm ed25519 -out one.pem");
    openssl(dir.path(), "genpkey -algorithm ed25519 -out two.pem");
    openssl(dir.path(), "pkey -in two.pem -aes256 -passout pass:x -out locked.pem");
    openssl(dir.path(), "pkey -in two.pem -pubout -out public.pem");
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    for second in ["two.pem", "one.pem", "locked.pem"] {
        let both = [read("one.pem"), read(second)].concat();
        assert_eq!(auto(Suite::FrostEd25519, &both).unwrap_err(), ImportError::SeveralKeys, "{second}");
    }
    for around in [[read("public.pem"), read("one.pem")], [read("one.pem"), read("public.pem")]] {
        auto(Suite::FrostEd25519, &around.concat()).unwrap();
    }
}

#[test]
fn a_curve_that_is_written_out_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    openssl(dir.path(), "ecparam -name prime256v1 -genkey -noout -out named.pem");
    openssl(dir.path(), "ec -in named.pem -param_enc explicit -out sec1.pem");
    openssl(dir.path(), "pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem");
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    let der = openssl(dir.path(), "ec -in named.pem -param_enc explicit -outform DER");
    for file in [read("sec1.pem"), read("pkcs8.pem"), der] {
        let error = auto(Suite::FrostP256, &file).unwrap_err();
        assert_eq!(error, ImportError::ExplicitCurve);
        assert!(error.to_string().contains("openssl ec -in FILE -param_enc named_curve -out COPY"), "{error}");
    }
    // The commands in the error work.
    openssl(dir.path(), "ec -in sec1.pem -param_enc named_curve -out copy.pem");
    openssl(dir.path(), "ec -in pkcs8.pem -param_enc named_curve -out copy2.pem");
    let key = |name: &str| auto(Suite::FrostP256, &read(name)).unwrap().0;
    assert_eq!(key("copy.pem").public_key_bytes(), key("named.pem").public_key_bytes());
    assert_eq!(key("copy2.pem").public_key_bytes(), key("named.pem").public_key_bytes());
}

#[test]
fn keys_that_openssh_can_write_otherwise_say_how() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, bits, suite) in [("ecdsa", "256", Suite::FrostP256), ("rsa", "2048", Suite::Sh00Pkcs1Sha256)] {
        run(dir.path(), "ssh-keygen", &["-q", "-t", kind, "-b", bits, "-f", kind, "-N", ""]);
        let read = || std::fs::read(dir.path().join(kind)).unwrap();
        let error = auto(suite, &read()).unwrap_err();
        assert!(error.to_string().contains("ssh-keygen -p -N \"\" -m PKCS8 -f COPY"), "{error}");
        run(dir.path(), "ssh-keygen", &["-q", "-p", "-N", "", "-m", "PKCS8", "-f", kind]);
        // The command in the error works; ordinary RSA keys are refused then for their primes.
        let imported = auto(suite, &read());
        assert!(matches!(imported, Ok(_) | Err(ImportError::RsaPrimes)), "{kind}");
        assert_eq!(imported.is_ok(), kind == "ecdsa");
    }
    run(dir.path(), "ssh-keygen", &["-q", "-t", "ecdsa", "-b", "384", "-f", "p384", "-N", ""]);
    let other = auto(Suite::FrostP256, &std::fs::read(dir.path().join("p384")).unwrap()).unwrap_err();
    assert!(matches!(&other, ImportError::Algorithm(name) if name.contains("nistp384")), "{other}");
}

/// The examples of RFC 8037, appendix A, and RFC 7517, appendix A.2.
const ED25519_JWK: &str = r#"{"kty":"OKP","crv":"Ed25519",
    "d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
const P256_JWK: &str = r#"{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
    "use":"enc","kid":"1"}"#;

#[test]
fn json_web_keys_keep_their_public_keys() {
    let base64 = |bytes: &[u8]| <base64ct::Base64UrlUnpadded as base64ct::Encoding>::encode_string(bytes);
    for format in [KeyFormat::Auto, KeyFormat::Jwk] {
        let (key, _) = import(Suite::FrostEd25519, format, ED25519_JWK.as_bytes()).unwrap();
        assert_eq!(base64(key.public_key_bytes()), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        for name in ["frost-p256", "sg02-p256", "cks05-p256", "ecdsa-p256"] {
            let (key, _) = import(suite(name), format, P256_JWK.as_bytes()).unwrap();
            assert_eq!(base64(&key.public_key_bytes()[1..]), "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4");
        }
    }
    // A set with one private key, as key stores write it, with public ones beside it.
    let public = P256_JWK.replace("\"d\"", "\"was\"");
    let set = format!("{{\"keys\":[{public},{ED25519_JWK}]}}");
    let (key, _) = auto(Suite::FrostEd25519, set.as_bytes()).unwrap();
    assert_eq!(base64(key.public_key_bytes()), "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    let pem = include_str!("safe_primes.pem");
    let numbers = super::pem::private_key(pem).unwrap().rsa_numbers().unwrap().map(|number| base64(&number));
    let [n, e, p, q] = numbers;
    let rsa = format!(r#" {{"kty":"RSA","n":"{n}","e":"{e}","d":"AA","p":"{p}","q":"{q}"}}"#);
    let (key, _) = auto(Suite::Sh00PssSha256, rsa.as_bytes()).unwrap();
    assert_eq!(key.public_key_bytes(), auto(Suite::Sh00PssSha256, pem.as_bytes()).unwrap().0.public_key_bytes());
    let three = rsa.replace(r#""e":"AQAB""#, r#""e":"Aw""#);
    assert_eq!(auto(Suite::Sh00PssSha256, three.as_bytes()).unwrap_err(), ImportError::RsaExponent);
}

#[test]
fn what_is_no_private_json_web_key_is_refused_in_words() {
    let refused = |text: &str| auto(Suite::FrostEd25519, text.as_bytes()).unwrap_err();
    let public = ED25519_JWK.replace("\"d\"", "\"kid\"");
    assert_eq!(refused(&public), ImportError::NotPrivate);
    let set = |keys: &[&str]| format!("{{\"keys\":[{}]}}", keys.join(","));
    assert_eq!(refused(&set(&[ED25519_JWK, P256_JWK])), ImportError::SeveralKeys);
    for empty in [&[][..], &[public.as_str()]] {
        assert_eq!(refused(&set(empty)), ImportError::NotPrivate);
    }
    assert_eq!(refused(&set(&[&set(&[ED25519_JWK])])), ImportError::NotPrivate);
    assert!(matches!(refused("{\"keys\":7}"), ImportError::Malformed(_)));
    assert_eq!(refused(&ED25519_JWK.replace("11qY", "11qZ")), ImportError::PublicKey);
    assert!(matches!(refused(P256_JWK), ImportError::OtherSuite { .. }));
    assert!(matches!(refused(r#"{"kty":"oct","k":"AAAA"}"#), ImportError::Algorithm(name) if name == "JWK oct"));
    assert!(matches!(refused(&P256_JWK.replace("P-256", "P-521")), ImportError::Algorithm(_)));
    assert!(matches!(
        refused(&ED25519_JWK.replace("nWGx", "nWG")),
        ImportError::Malformed(_) | ImportError::Length { .. }
    ));
    for text in ["{", "{}", "{\"kty\":1}", "{\"kty\":\"OKP\"}", "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"\"}"] {
        refused(text);
    }
    let long = format!(r#"{{"kty":"RSA","n":"{0}","e":"AQAB","d":"AA","p":"{0}","q":"{0}"}}"#, "A".repeat(20_000));
    assert_eq!(refused(&long), ImportError::Malformed("a number in it is too long"));
    let cut = |end: usize| auto(Suite::FrostEd25519, &ED25519_JWK.as_bytes()[..end]);
    assert!((0..ED25519_JWK.len()).all(|end| cut(end).is_err()));
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

/// The key has primes of `openssl prime -generate -safe -bits 1024`, put together with `openssl asn1parse -genconf`.
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
