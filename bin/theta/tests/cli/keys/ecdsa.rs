//! Keys of ECDSA, as people make, import and export them, and signatures in both forms.

use base64ct::{Base64, Encoding as _};
use sha2::Digest as _;

use crate::harness::Group;
use crate::keys::{run, verifiers::all_take};

/// For each curve of the suites, OpenSSL's name of it.
const CURVES: [(&str, &str); 2] = [("ecdsa-p256", "prime256v1"), ("ecdsa-secp256k1", "secp256k1")];

/// r and s of a signature in DER.
fn raw(der: &[u8]) -> Vec<u8> {
    let number = |at: usize| -> (&[u8], usize) {
        assert_eq!(der[at], 2);
        let end = at + 2 + usize::from(der[at + 1]);
        (&der[at + 2..end], end)
    };
    let (r, next) = number(2);
    let (s, end) = number(next);
    assert_eq!(end, der.len());
    let fixed = |number: &[u8]| [&[0; 32][..], number].concat()[number.len()..].to_vec();
    [fixed(r), fixed(s)].concat()
}

#[test]
fn keys_of_openssl_are_imported_and_its_signatures_verify() {
    let group = Group::made();
    group.file("message", "the message");
    group.file("other", "another message");
    for (suite, curve) in CURVES {
        run(group.path(), &format!("openssl ecparam -name {curve} -genkey -noout -out sec1.pem"));
        run(group.path(), "openssl pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem");
        run(group.path(), "openssl ec -in sec1.pem -pubout -out public.pem");
        let import = |name: &str, file: &str| group.theta(&["keys", "import", "--name", name, "--suite", suite, file]);
        import(suite, "sec1.pem").ok();
        import("twice", "pkcs8.pem").fails(2, &["has this key already"]);
        let pem = group.theta(&["keys", "export", suite]).ok().stdout;
        assert_eq!(pem, group.read("public.pem"), "byte for byte what openssl writes");
        let hex = group.theta(&["keys", "export", suite, "--format", "hex"]).ok().text();
        assert_eq!(hex.trim().len(), 66);

        run(group.path(), "openssl dgst -sha256 -sign sec1.pem -out message.der message");
        // OpenSSL does not choose the lower s.
        while suite == "ecdsa-secp256k1" && raw(&group.read("message.der"))[32] >= 0x7f {
            run(group.path(), "openssl dgst -sha256 -sign sec1.pem -out message.der message");
        }
        group.file("message.raw", raw(&group.read("message.der")));
        let digest = String::from_utf8(run(group.path(), "openssl dgst -sha256 -r message")).unwrap();
        let digest = format!("sha256:{}", &digest[..64]);
        for signature in ["message.der", "message.raw"] {
            group.theta(&["verify", "message", signature, "--key", suite]).ok();
            group.theta(&["verify", "--digest", &digest, signature, "--key", suite]).ok();
            group.theta(&["verify", "other", signature, "--key", suite]).fails(1, &["is not a signature of other"]);
        }
        group.file("message.cut", &raw(&group.read("message.der"))[1..]);
        group
            .theta(&["verify", "message", "message.cut", "--key", suite])
            .fails(1, &["malformed", "expected 64 bytes"]);
    }
    group.theta(&["verify", "message", "message.raw", "--key", "ecdsa-p256"]).fails(1, &["does not verify"]);
}

/// The nodes sign with a key that OpenSSL has made, in each of its forms, and go on when the shares that its dealer knew are no more. What verifies is the
/// public key that OpenSSL wrote before any node knew of it.
#[test]
fn nodes_sign_with_imported_keys() {
    let mut group = Group::made_with(&["--no-keys"]);
    for (suite, curve) in CURVES {
        run(group.path(), &format!("openssl ecparam -name {curve} -genkey -noout -out sec1.pem"));
        run(group.path(), "openssl pkcs8 -topk8 -nocrypt -in sec1.pem -out pkcs8.pem");
        run(group.path(), &format!("openssl ec -in sec1.pem -pubout -out {suite}.pem"));
        let form = if suite == "ecdsa-p256" { "sec1.pem" } else { "pkcs8.pem" };
        group.theta(&["keys", "import", "--name", suite, "--suite", suite, form]).ok();
    }
    group.start_all();
    for (suite, _) in CURVES {
        let signs = |message: &str| {
            all_take(&group, suite, suite, message);
            let verify = format!("openssl dgst -sha256 -verify {suite}.pem -signature signature.der message");
            run(group.path(), &verify);
        };
        (0..3).for_each(|turn| signs(&format!("imported, {turn}")));
        group.theta(&["keys", "refresh", suite]).ok();
        signs("with shares that no dealer knew");
    }
}

/// What DNSKEY records say of keys, against what OpenSSL says of the same ones.
#[test]
fn public_keys_are_written_as_dnskey_records() {
    let group = Group::made_with(&["--keys", "ed=frost-ed25519,p256=ecdsa-p256,k1=ecdsa-secp256k1"]);
    let primes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/keyfiles/src/import/safe_primes.pem");
    group.theta(&["keys", "import", "--name", "rsa", "--suite", "sh00-pkcs1-sha256", primes]).ok();
    let dnskey = |name: &str, algorithm: &str| {
        let text = group.theta(&["keys", "export", name, "--format", "dnskey"]).ok().text();
        let digits = text.strip_prefix(&format!("257 3 {algorithm} ")).unwrap_or_else(|| panic!("{text}"));
        Base64::decode_vec(digits.trim_end()).unwrap()
    };
    let der = |name: &str| {
        group.file("public.pem", group.theta(&["keys", "export", name, "--format", "pem"]).ok().stdout);
        run(group.path(), "openssl pkey -pubin -in public.pem -outform DER")
    };
    // RFC 8080, section 3, and RFC 6605, section 4: the key is the end of its encoding.
    let ed = der("ed");
    assert_eq!(dnskey("ed", "15"), ed[ed.len() - 32..]);
    let p256 = der("p256");
    assert_eq!(p256[p256.len() - 65], 4, "the point is not compressed");
    assert_eq!(dnskey("p256", "13"), p256[p256.len() - 64..]);
    // RFC 3110, section 2: an exponent of 3 bytes, then the modulus.
    der("rsa");
    let said = run(group.path(), "openssl rsa -pubin -in public.pem -noout -modulus");
    let said = String::from_utf8(said).unwrap();
    let modulus = hex::decode(said.trim().strip_prefix("Modulus=").unwrap()).unwrap();
    assert_eq!(dnskey("rsa", "8"), [&[3, 1, 0, 1], &modulus[..]].concat());

    let other = group.theta(&["keys", "export", "k1", "--format", "dnskey"]);
    other.fails(2, &["public keys of ecdsa-secp256k1 have no DNSKEY form"]);
    let shown = group.theta(&["keys", "export", "p256", "--json"]).ok().json();
    assert!(shown["dnskey"].as_str().is_some_and(|text| text.starts_with("257 3 13 ")), "{shown}");
}

#[test]
fn a_high_s_is_refused_in_words() {
    let group = Group::made();
    group.file("message", "the message");
    run(group.path(), "openssl ecparam -name secp256k1 -genkey -noout -out key.pem");
    group.theta(&["keys", "import", "--name", "wallet", "--suite", "ecdsa-secp256k1", "key.pem"]).ok();
    loop {
        run(group.path(), "openssl dgst -sha256 -sign key.pem -out message.der message");
        let s = raw(&group.read("message.der"))[32];
        if s > 0x7f {
            let verify = group.theta(&["verify", "message", "message.der", "--key", "wallet"]);
            verify.fails(1, &["s is over half of the group's order", "lower"]);
            return;
        }
    }
}

#[test]
fn a_key_takes_an_honest_majority() {
    let group = Group::made_with(&["--nodes", "5", "--threshold", "4"]);
    run(group.path(), "openssl ecparam -name prime256v1 -genkey -noout -out key.pem");
    let too_few = &["gold", "ecdsa-p256 cannot be 4 of 5", "with 5 holders take k from 2 to 3"];
    let honest = ["--majority", "honest"];
    group.theta(&[&["keys", "deal", "gold=ecdsa-p256"][..], &honest].concat()).fails(2, too_few);
    let import = ["keys", "import", "--name", "gold", "--suite", "ecdsa-p256", "key.pem"];
    group.theta(&[&import[..], &honest].concat()).fails(2, too_few);

    let mut group = Group::made_with(&["--nodes", "5", "--threshold", "2"]);
    group.start_all();
    group.theta(&[&["keys", "create", "gold=ecdsa-p256", "--threshold", "4"][..], &honest].concat()).fails(2, too_few);
    let create = ["keys", "create", "gold=ecdsa-p256", "--threshold", "2", "--holders"];
    group.theta(&[&create[..], &["1,2"], &honest].concat()).fails(2, &["2 of 2", "take 3 holders for k = 2"]);
    group.theta(&[&create[..], &["1,2,3"]].concat()).ok();
    let shown = group.theta(&["keys", "show", "gold", "--json"]).ok().json();
    assert_eq!((&shown["scheme"], &shown["threshold"], &shown["nodes"]), (&"ECDSA".into(), &2.into(), &3.into()));
    let reshare =
        |k: &str, holders: &str| group.theta(&["keys", "reshare", "gold", "--threshold", k, "--holders", holders]);
    // The nodes say so.
    reshare("3", "1,2,3,4").fails(1, &["ecdsa-p256 cannot be 3 of 4"]);
    reshare("3", "1,2,3,4,5").ok();
    all_take(&group, "gold", "ecdsa-p256", "moved to 3 of 5");
    group.theta(&["keys", "refresh", "gold"]).ok();
    all_take(&group, "gold", "ecdsa-p256", "with new shares");
    let pem = group.theta(&["keys", "export", "gold"]).ok().stdout;
    group.file("gold.pem", pem);
    let read = run(group.path(), "openssl pkey -pubin -in gold.pem -noout -text");
    assert!(String::from_utf8_lossy(&read).contains("P-256"));
    group.file("message", "the message");
    group.theta(&["sign", "message", "--key", "sign", "--format", "der"]).fails(2, &["leave out --format"]);
}

/// What real nodes signed is what Ethereum takes: from digest and signature alone another library finds the key.
#[test]
fn the_key_follows_from_a_signature_in_ethereums_form() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    group.theta(&["keys", "create", "wallet=ecdsa-secp256k1"]).ok();
    group.theta(&["keys", "create", "gold=ecdsa-p256"]).ok();
    let hex = group.theta(&["keys", "export", "wallet", "--format", "hex"]).ok().text();
    let public = secp256k1::PublicKey::from_slice(&hex::decode(hex.trim()).unwrap()).unwrap();
    let sign = |file: &str, form: &[&str]| {
        group.theta(&[&["sign", file, "--key", "wallet", "--json"][..], form].concat()).ok().json()
    };
    let mut seen = [false; 2];
    for turn in 0..12 {
        let (file, text) = (format!("message-{turn}"), format!("message {turn}"));
        group.file(&file, &text);
        let signed = sign(&file, &["--format", "ethereum"]);
        let signature = group.read(&format!("{file}.sig"));
        assert_eq!((signature.len(), hex::encode(&signature)), (65, signed["signature"].as_str().unwrap().to_owned()));
        let id = i32::from(signature[64]) - 27;
        assert_eq!(signed["recovery_id"], id);
        seen[usize::try_from(id).unwrap()] = true;
        let digest = <[u8; 32]>::try_from(sha2::Sha256::digest(&text).as_slice()).unwrap();
        let id = secp256k1::ecdsa::RecoveryId::try_from(id).unwrap();
        let recoverable = secp256k1::ecdsa::RecoverableSignature::from_compact(&signature[..64], id).unwrap();
        assert_eq!(recoverable.recover(secp256k1::Message::from_digest(digest)).unwrap(), public);
        group.theta(&["verify", &file, &format!("{file}.sig"), "--key", "wallet"]).ok();
        if seen == [true; 2] {
            break;
        }
    }
    assert_eq!(seen, [true; 2], "both ids in twelve signatures");
    group.file("plain", "plain");
    assert!(sign("plain", &[])["recovery_id"].is_number(), "with every form");
    let refused = group.theta(&["sign", "plain", "--key", "gold", "--format", "ethereum", "-o", "refused.sig"]);
    refused.fails(2, &["--format ethereum is for keys of ecdsa-secp256k1"]);
    // Of several at once, each has its own.
    for file in ["one", "two"] {
        group.file(file, file);
    }
    group.theta(&["sign", "one", "two", "--key", "wallet", "--format", "ethereum"]).ok();
    for (file, signature) in [("one", "one.sig"), ("two", "two.sig")] {
        group.theta(&["verify", file, signature, "--key", "wallet"]).ok();
        assert_eq!(group.read(signature).len(), 65);
    }
}

/// Stocks are there before the first signature, and `theta status` shows them.
#[test]
fn idle_nodes_fill_their_stocks() {
    let mut group = Group::made_with(&["--nodes", "3", "--no-keys"]);
    group.start_all();
    group.theta(&["keys", "create", "gold=ecdsa-p256"]).ok();
    let full = |group: &Group, what: &str| {
        let mut status = serde_json::Value::Null;
        for _ in 0..300 {
            status = group.theta(&["status", "--json"]).ok().json();
            let stock = &status["stocks"][0];
            let ready = |node: &str| stock["ready"][node].as_u64().unwrap_or(0);
            if ["1", "2", "3"].into_iter().all(|node| ready(node) >= 32) {
                assert_eq!((&stock["key"], &stock["kind"]), (&"gold".into(), &"presignatures".into()));
                assert_eq!((&stock["version"], &stock["level"]), (&1.into(), &32.into()));
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{what}: {status}");
    };
    full(&group, "a new key");
    let shown = group.theta(&["status"]).ok().text();
    assert!(shown.contains("gold@1") && shown.contains("presignatures"), "{shown}");
    group.theta(&["keys", "refresh", "gold"]).ok();
    full(&group, "after a refresh");
    group.kill(2);
    group.start(2);
    full(&group, "after a restart");
}

/// Signatures of real nodes, through the key's whole life: OpenSSL verifies each, and one holder may be away.
#[test]
fn a_key_that_nobody_holds_signs_for_openssl() {
    for (suite, _) in CURVES {
        let mut group = Group::made_with(&["--no-keys"]);
        group.start_all();
        group.theta(&["keys", "create", &format!("gold={suite}")]).ok();
        let signs = |group: &Group, what: &str| {
            group.file("message", what);
            group.theta(&["sign", "message", "-o", "message.der", "--format", "der"]).ok();
            group.theta(&["verify", "message", "message.der"]).ok();
            let pem = group.theta(&["keys", "export", "gold"]).ok().stdout;
            group.file("gold.pem", pem);
            run(group.path(), "openssl dgst -sha256 -verify gold.pem -signature message.der message");
        };
        for turn in 0..4 {
            signs(&group, &format!("message {turn}"));
        }
        let digest = String::from_utf8(run(group.path(), "openssl dgst -sha256 -r message")).unwrap();
        let digest = format!("sha256:{}", &digest[..64]);
        group.theta(&["sign", "--digest", &digest, "-o", "digest.sig"]).ok();
        group.theta(&["verify", "message", "digest.sig"]).ok();
        group.theta(&["keys", "refresh", "gold"]).ok();
        signs(&group, "after a refresh");
        group.theta(&["keys", "rotate", "gold"]).ok();
        signs(&group, "a new version");
        group.kill(3);
        for turn in 0..4 {
            signs(&group, &format!("without node 3, message {turn}"));
        }
        group.start(3);
        signs(&group, "and with it again");
    }
}
