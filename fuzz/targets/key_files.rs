//! `.pub` and `.share` files, public parts and shares in binary, and keys as ceremonies carry them: a key that is read, written and
//! read again stays the same.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{SAMPLES, plant, rng};
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, deal_any};
use theta_sharing::{EncodedKey, Threshold};

/// A public key, its file, and the file and the binary form of one of its shares.
type Key = (AnyPublicKey, String, String, Vec<u8>);

/// Keys of every suite: the known answers, and new ones where there are none.
static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let known = SAMPLES.iter().map(|sample| {
        let share = sample.keys[0].to_bytes().expose().clone();
        (sample.public.clone(), sample.public_text.clone(), sample.share_texts[0].clone(), share)
    });
    let missing = |suite: &Suite| SAMPLES.iter().all(|sample| sample.public.suite() != *suite);
    known.chain(Suite::ALL.into_iter().filter(missing).map(dealt)).collect()
});

fn dealt(suite: Suite) -> Key {
    let name: KeyName = "name".parse().expect("a name");
    let (public, shares) = deal_any(suite, Threshold::new(2, 3).expect("2 of 3"), &mut rng());
    let share = &shares[0];
    let (text, bytes) = (share.to_text(&name).expose().clone(), share.to_bytes().expose().clone());
    (public.clone(), public.to_text(&name), text, bytes)
}

fuzz_target!(init: plant("key_files", seeds()), |bytes: &[u8]| {
    // Keys in the encoding in which ceremonies carry them.
    if let Ok(key) = EncodedKey::decode(bytes) {
        assert_eq!(key.encode(), bytes);
        for suite in Suite::ALL {
            if let Ok(public) = AnyPublicKey::from_encoded(suite, &key) {
                assert_eq!(public.encoded(), Some(key.clone()));
            }
        }
    }
    // As stores and ledgers have them, and stores their shares.
    if let Ok(public) = AnyPublicKey::from_bytes(bytes) {
        assert_eq!(public.to_bytes(), bytes);
    }
    for (public, ..) in KEYS.iter() {
        if let Ok(share) = AnyKeyShare::from_bytes(bytes, public) {
            assert_eq!(share.to_bytes().expose(), bytes);
        }
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    if let Ok((name, public)) = AnyPublicKey::from_text(text) {
        assert_eq!(AnyPublicKey::from_text(&public.to_text(&name)), Ok((name, public)));
    }
    for (public, ..) in KEYS.iter() {
        if let Ok((name, share)) = AnyKeyShare::from_text(text, public) {
            let (again, same) = AnyKeyShare::from_text(share.to_text(&name).expose(), public).expect("our own file");
            assert_eq!((again, same.index(), same.key_id()), (name, share.index(), share.key_id()));
        }
    }
    if let Ok(name) = text.parse::<KeyName>() {
        assert_eq!(name.to_string(), text);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let files =
        |(_, public, share, bytes): &Key| [public.clone().into_bytes(), share.clone().into_bytes(), bytes.clone()];
    let encoded = KEYS.iter().filter_map(|(public, ..)| Some(public.encoded()?.encode()));
    let parts = KEYS.iter().map(|(public, ..)| public.to_bytes());
    KEYS.iter().flat_map(files).chain(encoded).chain(parts).collect()
}
