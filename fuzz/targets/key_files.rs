//! `.pub` and `.share` files: what is read, written and read again is the same key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{SAMPLES, plant};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};

fuzz_target!(init: plant("key_files", seeds()), |text: &str| {
    if let Ok((name, public)) = AnyPublicKey::from_text(text) {
        assert_eq!(AnyPublicKey::from_text(&public.to_text(&name)), Ok((name, public)));
    }
    for sample in SAMPLES.iter() {
        if let Ok((name, share)) = AnyKeyShare::from_text(text, &sample.public) {
            let (again, same) = AnyKeyShare::from_text(share.to_text(&name).expose(), &sample.public).expect("our own file");
            assert_eq!((again, same.index(), same.key_id()), (name, share.index(), share.key_id()));
        }
    }
    if let Ok(name) = text.parse::<KeyName>() {
        assert_eq!(name.to_string(), text);
    }
});

fn seeds() -> Vec<Vec<u8>> {
    let texts = SAMPLES.iter().flat_map(|sample| sample.share_texts.iter().take(1).chain([&sample.public_text]));
    texts.map(|text| text.clone().into_bytes()).collect()
}
