//! Keys that are dealt and shared, without their files.

use theta_groups::Secret;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyPublicKey, DealError, TypedPublicKey, import_any};
use theta_sharing::Threshold;

use crate::suites::fixture::{curve_suites, key, rng};

#[test]
fn imported_secrets_are_checked() {
    let threshold = Threshold::new(2, 3).unwrap();
    for suite in curve_suites() {
        // The last byte of an Ed448 scalar is always zero.
        let (len, last) = if suite.group() == "ed448" { (57, 0) } else { (32, 1) };
        let secret = [vec![1; len - 1], vec![last]].concat();
        let import = |bytes: Vec<u8>| import_any(suite, threshold, &Secret::new(bytes), &mut rng(1));
        assert_eq!(import(vec![0; len]).unwrap_err(), DealError::ZeroSecret);
        assert!(matches!(import(vec![0xff; len]).unwrap_err(), DealError::Secret(_)));
        assert!(matches!(import(vec![1; len - 1]).unwrap_err(), DealError::Secret(_)));
        // For all randomness, the public key is that of the secret.
        let again = import_any(suite, threshold, &Secret::new(secret.clone()), &mut rng(2)).unwrap().0;
        let first = import(secret).unwrap().0;
        assert_eq!(first.public_key_bytes(), again.public_key_bytes());
        assert_eq!(first.key_id(), again.key_id());
        assert_ne!(first, again, "the sharing is another");
    }
}

#[test]
fn one_copy_of_the_public_material_serves_all() {
    use std::sync::Arc;
    let (public, keys) = key(Suite::Sg02Ristretto255, 100, 300, 1);
    assert_eq!(keys.len(), 300);
    let set = |key: &AnyPublicKey| match key.typed() {
        TypedPublicKey::Ristretto255(set) => Arc::clone(set),
        other => panic!("{other:?}"),
    };
    let one = set(&public);
    let clones: Vec<_> = (0..300).map(|_| public.clone()).collect();
    assert!(clones.iter().all(|clone| Arc::ptr_eq(&set(clone), &one)));
    assert_eq!(clones[299], public);
}
